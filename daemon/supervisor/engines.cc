#include "daemon/supervisor/engines.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slate::daemon {
namespace {

constexpr const char* kIdleReason = "its domain has no sessions any more";

/// Where all trust one another, nothing is fenced.
Config config_for(const Domain& domain, Config config) {
  const bool trusts =
      domain.kind == Domain::Kind::kGroup ||
      (domain.kind == Domain::Kind::kCommon && config.sharing == SharingChoice::kTrusted);
  if (trusts) config.fence = FenceChoice::kNever;
  if (domain.kind != Domain::Kind::kCommon) config.spare_engine = SpareChoice::kNever;
  return config;
}

}  // namespace

Engines::Engines(std::string program, const Config& config, EngineKeeper::Events events,
                 HasSessions has_sessions)
    : program_(std::move(program)),
      config_(config),
      events_(std::move(events)),
      has_sessions_(std::move(has_sessions)) {
  add({});
}

EngineKeeper& Engines::add(const Domain& domain) {
  auto keeper =
      std::make_unique<EngineKeeper>(program_, config_for(domain, config_), serials_, events_);
  if (domain != Domain{}) log_info("domain {} gets an engine of its own", domain_name(domain));
  return *(keepers_[domain] = std::move(keeper));
}

EngineProcess* Engines::of(const Domain& domain) {
  const auto found = keepers_.find(domain);
  if (found != keepers_.end()) return found->second->active();
  if (!stopping_) add(domain).service();
  return nullptr;
}

EngineProcess* Engines::find(std::uint64_t serial) {
  for (const auto& [domain, keeper] : keepers_) {
    if (EngineProcess* const engine = keeper->find(serial)) return engine;
  }
  return nullptr;
}

std::optional<Domain> Engines::domain_of(std::uint64_t serial) {
  for (const auto& [domain, keeper] : keepers_) {
    if (keeper->find(serial) != nullptr) return domain;
  }
  return std::nullopt;
}

void Engines::give_common_to(const Domain& domain) {
  log_info("the common engine is that of domain {} from now on", domain_name(domain));
  keepers_[domain] = std::move(keepers_.at({}));
  add({}).service();
}

void Engines::renew(const std::string& program, const Config& config) {
  program_ = program;
  config_ = config;
  for (const auto& [domain, keeper] : keepers_) keeper->renew(program, config_for(domain, config));
}

bool Engines::renews() const {
  return std::ranges::any_of(keepers_, [](const auto& each) { return each.second->renews(); });
}

bool Engines::are_renewed() const {
  return std::ranges::all_of(keepers_, [](const auto& each) { return each.second->is_renewed(); });
}

nlohmann::json Engines::hand_over(Handover& handover) {
  leaving_.clear();
  nlohmann::json keepers = nlohmann::json::array();
  for (const auto& [domain, keeper] : keepers_)
    keepers.push_back({{"domain", to_json(domain)}, {"keeper", keeper->hand_over(handover)}});
  return {{"keepers", keepers},
          {"serials", serials_},
          {"restarts", past_restarts_},
          {"time", time_.hand_over(handover)}};
}

void Engines::take_over(const nlohmann::json& state) {
  serials_ = state.at("serials").get<std::uint64_t>();
  past_restarts_ = state.at("restarts").get<std::uint64_t>();
  for (const nlohmann::json& each : state.at("keepers")) {
    const Domain domain = domain_from(each.at("domain"));
    EngineKeeper& keeper = keepers_.contains(domain) ? *keepers_.at(domain) : add(domain);
    keeper.take_over(each.at("keeper"));
  }
  if (const auto taken = time_.take_over(state.at("time")); !taken)
    log_error("engines share the device without weights: {}", taken.error().message);
}

bool Engines::make_room() {
  bool gives = false;
  for (const auto& [domain, keeper] : keepers_) gives |= keeper->give_up_spares();
  return gives;
}

bool Engines::gives_back() const {
  return std::ranges::any_of(keepers_, [](const auto& each) { return each.second->has_leaving(); });
}

void Engines::add_to(PollSet& polls) const {
  for (const auto& [domain, keeper] : keepers_) keeper->add_to(polls);
  for (const auto& keeper : leaving_) keeper->add_to(polls);
  for (const auto& [domain, since] : idle_since_) polls.add_deadline(since + kIdle);
}

void Engines::service() {
  for (const auto& [domain, keeper] : keepers_) keeper->service();
  for (const auto& keeper : leaving_) keeper->service();
  std::erase_if(leaving_, [](const auto& keeper) { return keeper->all_ended(); });
  if (stopping_) return;
  drop_idle();
  share_time();
}

void Engines::share_time() {
  std::vector<EngineProcess*> engines;
  for (const auto& [domain, keeper] : keepers_)
    for (EngineProcess* const engine : keeper->serving()) engines.push_back(engine);
  time_.settle(engines);
}

/// An engine without sessions has the memory of a context. A common one of which several users were
/// has what they have left behind, so that it fences all kernels: a new one takes its place.
void Engines::drop_idle() {
  const auto now = Clock::now();
  for (auto each = keepers_.begin(); each != keepers_.end();) {
    const auto& [domain, keeper] = *each;
    const bool is_common = domain == Domain{};
    const EngineProcess* const engine = keeper->active();
    const auto stays = [&] {
      return engine == nullptr || engine->users.size() < 2 || keeper->renews() ||
             config_for(domain, config_).fence != FenceChoice::kAuto;
    };
    if (has_sessions_(domain) || (is_common && stays())) {
      idle_since_.erase(domain);
      ++each;
      continue;
    }
    if (now < idle_since_.try_emplace(domain, now).first->second + kIdle) {
      ++each;
      continue;
    }
    idle_since_.erase(domain);
    if (is_common) {
      log_info("several users have had sessions in engine {}, and none has any more: it is renewed",
               engine->pid());
      (void)keeper->refresh();
      ++each;
      continue;
    }
    log_info("domain {} has no sessions any more: its engine ends", domain_name(domain));
    past_restarts_ += keeper->restarts();
    keeper->stop(kIdleReason);
    leaving_.push_back(std::move(each->second));
    each = keepers_.erase(each);
  }
}

void Engines::stop(const std::string& reason) {
  stopping_ = true;
  for (const auto& [domain, keeper] : keepers_) keeper->stop(reason);
}

bool Engines::all_ended() const {
  return leaving_.empty() &&
         std::ranges::all_of(keepers_, [](const auto& each) { return each.second->all_ended(); });
}

void Engines::kill_all() {
  for (const auto& [domain, keeper] : keepers_) keeper->kill_all();
  leaving_.clear();
}

std::string Engines::trouble(const Domain& domain) const {
  const auto found = keepers_.find(domain);
  return found == keepers_.end() ? std::string() : found->second->trouble();
}

std::vector<std::pair<Domain, EngineProcess*>> Engines::all() {
  std::vector<std::pair<Domain, EngineProcess*>> engines;
  for (const auto& [domain, keeper] : keepers_) {
    if (EngineProcess* const engine = keeper->active()) engines.emplace_back(domain, engine);
  }
  return engines;
}

std::uint64_t Engines::restarts() const {
  std::uint64_t sum = past_restarts_;
  for (const auto& [domain, keeper] : keepers_) sum += keeper->restarts();
  return sum;
}

std::string Engines::last_fault() const {
  for (const auto& [domain, keeper] : keepers_) {
    if (!keeper->last_fault().empty()) return keeper->last_fault();
  }
  return {};
}

}  // namespace slate::daemon
