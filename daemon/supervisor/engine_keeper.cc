#include "daemon/supervisor/engine_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstDelay = 100ms;
constexpr auto kLongestDelay = 10s;
constexpr int kFailuresUntilTrouble = 3;
/// Part of the device's memory that is free where there is room for a spare engine.
constexpr std::uint64_t kRoomForSpare = 5;
/// How long there is no spare engine after its memory was needed.
constexpr auto kNoRoomFor = 60s;
/// How long two spare engines are kept after one was lost. Faults come in rows, and a spare engine
/// takes a second to start.
constexpr auto kSecondSpareFor = 60s;

}  // namespace

void EngineKeeper::add_to(PollSet& polls) const {
  const auto add = [&](const EngineProcess& engine) {
    const bool has_to_hear = stopping_ && !engine.told_to_stop;
    polls.add(engine.link().fd(), has_to_hear ? POLLIN | POLLOUT : POLLIN);
    polls.add(engine.exit_fd(), POLLIN);
    if (const auto next = engine.heartbeat.next()) polls.add_deadline(*next);
  };
  if (active_) add(*active_);
  std::ranges::for_each(spares_, add);
  for (const EngineProcess& engine : retired_) add(engine);
  for (const EngineProcess& engine : leaving_) polls.add(engine.exit_fd(), POLLIN);
  if (stopping_) return;
  if (!active_) polls.add_deadline(start_at_);
  if (starts_spare()) polls.add_deadline(*spare_at_);
  if (second_until_) polls.add_deadline(*second_until_);
}

/// For a spare engine that nobody asked for.
bool EngineKeeper::has_room() const {
  const DeviceInfo& device = active_->device;
  return device.is_simulated == 0 && active_->free_memory >= device.total_memory / kRoomForSpare;
}

bool EngineKeeper::give_up_spares() {
  if (spares_.empty() || renewing_ || config_.spare_engine != SpareChoice::kAuto) return false;
  log_info("the spare engines end, as the device has no memory left");
  end_spares(0);
  spare_at_ = Clock::now() + kNoRoomFor;
  return true;
}

std::vector<pid_t> EngineKeeper::spares() const {
  std::vector<pid_t> pids;
  for (const EngineProcess& engine : spares_)
    if (engine.ready) pids.push_back(engine.pid());
  return pids;
}

std::uint64_t EngineKeeper::spare_bytes() const {
  std::uint64_t bytes = 0;
  for (const EngineProcess& engine : spares_) bytes += engine.own_bytes;
  return bytes;
}

/// All but the first `kept`.
void EngineKeeper::end_spares(std::size_t kept) {
  while (spares_.size() > kept) {
    spares_.back().kill();
    leaving_.push_back(std::move(spares_.back()));
    spares_.pop_back();
  }
}

/// Requires: an active engine that is ready.
std::size_t EngineKeeper::spares_wanted() const {
  if (renewing_) return 1;
  if (config_.spare_engine == SpareChoice::kNever) return 0;
  if (config_.spare_engine == SpareChoice::kAuto && !has_room()) return 0;
  return second_until_ && has_room() ? 2 : 1;
}

/// From spare_at_ on. They start one after the other, so that the first is ready soon.
bool EngineKeeper::starts_spare() const {
  if (!active_ || !active_->ready || !spare_at_) return false;
  return spares_.size() < spares_wanted() && std::ranges::all_of(spares_, &EngineProcess::ready);
}

void EngineKeeper::service() {
  if (active_) service_active();
  service_spares();
  service_retired();
  service_leaving();
  if (stopping_) tell_stop();
  start_due();
}

nlohmann::json EngineKeeper::hand_over(Handover& handover) {
  spares_.clear();
  leaving_.clear();
  nlohmann::json engines = nlohmann::json::array();
  if (active_) engines.push_back(active_->hand_over(handover));
  for (const EngineProcess& engine : retired_) engines.push_back(engine.hand_over(handover));
  return {{"has_active", active_.has_value()},
          {"engines", engines},
          {"restarts", restarts_},
          {"last_fault", last_fault_}};
}

void EngineKeeper::take_over(const nlohmann::json& state) {
  restarts_ = state.at("restarts").get<std::uint64_t>();
  last_fault_ = state.at("last_fault").get<std::string>();
  for (const nlohmann::json& each : state.at("engines"))
    retired_.push_back(EngineProcess::take_over(each, config_));
  if (!state.at("has_active").get<bool>()) return;
  active_.emplace(std::move(retired_.front()));
  retired_.pop_front();
  was_ever_ready_ = active_->ready;
  spare_at_ = Clock::now();
}

EngineProcess* EngineKeeper::find(std::uint64_t serial) {
  if (active_ && active_->serial == serial) return &*active_;
  const auto found = std::ranges::find(retired_, serial, &EngineProcess::serial);
  return found == retired_.end() ? nullptr : &*found;
}

std::vector<EngineProcess*> EngineKeeper::serving() {
  std::vector<EngineProcess*> serving;
  if (EngineProcess* const engine = active()) serving.push_back(engine);
  for (EngineProcess& engine : retired_) serving.push_back(&engine);
  return serving;
}

void EngineKeeper::renew(const std::string& program, const Config& config) {
  program_ = program;
  config_ = config;
  renewed_from_ = serials_;
  if (!active_) return;  // the one that starts next is new
  renewing_ = true;
  end_spares(0);  // of the old program
  spare_at_ = Clock::now();
}

bool EngineKeeper::refresh() {
  if (active() == nullptr || renewing_) return true;
  if (retired_.size() >= kMostOlder) return false;
  renewing_ = true;
  if (spares_.empty()) spare_at_ = Clock::now();
  return true;
}

void EngineKeeper::start_due() {
  const auto now = Clock::now();
  if (stopping_ || hopeless_) return;
  if (!active_ && now >= start_at_) start_active();
  if (!starts_spare() || now < *spare_at_) return;
  auto started = start_process(kSpare);
  if (started) {
    spares_.push_back(std::move(*started));
  } else {
    spare_at_ = now + kLongestDelay;
    renewing_ = false;
  }
}

Result<EngineProcess> EngineKeeper::start_process(std::uint32_t flags) {
  auto started = EngineProcess::start(program_, config_, flags);
  if (started) started->serial = ++serials_;
  return started;
}

void EngineKeeper::start_active() {
  auto started = start_process(0);
  if (!started) return start_up_failed(started.error());
  active_.emplace(std::move(*started));
  log_debug("engine started, pid {}", active_->pid());
}

/// The engine takes sessions from now on.
void EngineKeeper::started(EngineProcess& engine) {
  log_info("engine {} is ready on {}", engine.pid(), engine.device.name);
  failures_ = 0;
  trouble_.clear();
  was_ever_ready_ = true;
  spare_at_ = Clock::now();
  events_.ready(engine);
}

/// Reads what the engine says. False when its end of the link is closed.
bool EngineKeeper::read(EngineProcess& engine, bool has_sessions) {
  while (true) {
    auto received = engine.link().receive();
    if (!received) return false;
    if (!*received) return true;
    LinkMessage& message = **received;
    engine.heartbeat.heard(Clock::now());
    switch (message.header.type) {
      case LinkType::kReady:
        if (message.header.number != kLinkVersion || message.text.size() != sizeof(DeviceInfo)) {
          engine.last_words =
              Error{ErrorCode::kProtocol, "the engine is of another version of slate"};
          return false;
        }
        std::memcpy(&engine.device, message.text.data(), sizeof(DeviceInfo));
        engine.ready = true;
        engine.free_memory = message.header.limit;
        engine.own_bytes = message.header.user_limit;
        if (has_sessions) {
          started(engine);
        } else {
          log_debug("spare engine {} is ready", engine.pid());
        }
        break;
      case LinkType::kStartFailed:
      case LinkType::kFault:
        engine.last_words = Error{message.header.code, message.text};
        engine.start_failed = message.header.type == LinkType::kStartFailed;
        engine.culprit = message.header.session;
        engine.is_frozen =
            message.header.type == LinkType::kFault && (message.header.flags & kFrozen) != 0;
        break;
      case LinkType::kAlive:
        break;
      default:
        if (has_sessions) events_.message(engine, std::move(message));
    }
  }
}

/// Asks an engine that is silent, and ends one that hangs. A core dump may take its time; the
/// second look ends that, too.
void EngineKeeper::watch(EngineProcess& engine) {
  const auto now = Clock::now();
  if (engine.heartbeat.should_ask(now)) {
    // A link without room is a question, too: the engine has not read the ones before.
    (void)engine.link().try_send({.type = LinkType::kAlive});
    engine.heartbeat.asked(now);
  }
  if (!engine.heartbeat.is_hung(now)) return;
  if (engine.last_words) return engine.kill();
  engine.last_words =
      Error{ErrorCode::kUnavailable,
            fmt::format("the engine did not answer for {} s", config_.engine_timeout_seconds)};
  log_error("engine {} hangs: it did not answer for {} s", engine.pid(),
            config_.engine_timeout_seconds);
  engine.abort();
  engine.heartbeat.asked(now);
}

/// Why the engine serves nobody any more; nullopt: it does, or it is not known yet. The process of
/// a frozen one may still be there.
std::optional<Error> EngineKeeper::end_of(EngineProcess& engine, bool has_sessions) {
  if (engine.is_frozen) return engine.last_words;
  if ((poll_now(engine.exit_fd(), POLLIN) & POLLIN) == 0) return std::nullopt;
  (void)read(engine, has_sessions);
  return engine.ended();
}

void EngineKeeper::service_active() {
  // An engine that closed its link is of no use, even if it hangs on its way out.
  if (!read(*active_, true)) active_->kill();
  watch(*active_);
  const auto cause = end_of(*active_, true);
  if (!cause) return;
  EngineProcess engine = std::move(*active_);
  active_.reset();
  const bool hopeless =
      engine.start_failed && !was_ever_ready_ && cause->code == ErrorCode::kInvalidValue;
  if (hopeless) hopeless_ = *cause;
  replace(engine, *cause);
  if (engine.pid() != 0) leaving_.push_back(std::move(engine));
}

void EngineKeeper::replace(const EngineProcess& engine, const Error& cause) {
  if (stopping_) return;
  if (!engine.ready) return start_up_failed(cause);
  ++restarts_;
  last_fault_ = fmt::format("{}: {}", error_name(cause.code), cause.message);
  log_warning("engine replaced: {}", last_fault_);
  events_.died(engine, cause);
  renewing_ = false;
  start_at_ = Clock::now();
  second_until_ = start_at_ + kSecondSpareFor;
  if (spares_.empty()) return;
  active_.emplace(std::move(spares_.front()));
  spares_.pop_front();
  if (active_->ready) started(*active_);
}

void EngineKeeper::start_up_failed(const Error& cause) {
  ++failures_;
  const auto delay =
      std::min<Clock::duration>(kFirstDelay * (1 << std::min(failures_, 10)), kLongestDelay);
  start_at_ = Clock::now() + delay;
  log_error("engine did not start: {}", cause.message);
  last_fault_ = fmt::format("{}: {}", error_name(cause.code), cause.message);
  if (failures_ >= kFailuresUntilTrouble)
    trouble_ = "slate's engine does not start: " + cause.message;
}

void EngineKeeper::service_spares() {
  for (auto engine = spares_.begin(); engine != spares_.end();) {
    if (!read(*engine, false)) engine->kill();
    watch(*engine);
    const auto cause = end_of(*engine, false);
    if (!cause) {
      ++engine;
      continue;
    }
    log_warning("spare engine ended: {}", cause->message);
    engine = spares_.erase(engine);
    spare_at_ = Clock::now() + kLongestDelay;
    renewing_ = false;
  }
  if (second_until_ && Clock::now() >= *second_until_) {
    second_until_.reset();
    end_spares(1);
  }
  if (renewing_ && !spares_.empty() && spares_.front().ready) retire_active();
}

/// The spare engine takes the active one's place.
void EngineKeeper::retire_active() {
  renewing_ = false;
  log_info("engine {} takes the place of {}", spares_.front().pid(), active_->pid());
  retired_.push_back(std::move(*active_));
  active_.emplace(std::move(spares_.front()));
  spares_.pop_front();
  started(*active_);
}

void EngineKeeper::service_retired() {
  for (auto engine = retired_.begin(); engine != retired_.end();) {
    if (!read(*engine, true)) engine->kill();
    watch(*engine);
    if (!stopping_ && !events_.is_in_use(engine->serial)) engine->tell_stop("it was renewed");
    const auto cause = end_of(*engine, true);
    if (!cause) {
      ++engine;
      continue;
    }
    if (!stopping_ && events_.is_in_use(engine->serial)) events_.died(*engine, *cause);
    if (engine->pid() != 0) leaving_.push_back(std::move(*engine));
    engine = retired_.erase(engine);
  }
}

void EngineKeeper::service_leaving() {
  std::erase_if(leaving_, [](EngineProcess& engine) {
    return (poll_now(engine.exit_fd(), POLLIN) & POLLIN) != 0 && engine.ended();
  });
}

void EngineKeeper::stop(const std::string& reason) {
  stopping_ = true;
  stop_reason_ = reason;
  tell_stop();
}

void EngineKeeper::tell_stop() {
  const auto tell = [this](EngineProcess& engine) { engine.tell_stop(stop_reason_); };
  if (active_) tell(*active_);
  std::ranges::for_each(spares_, tell);
  std::ranges::for_each(retired_, tell);
}

void EngineKeeper::kill_all() {
  active_.reset();
  spares_.clear();
  retired_.clear();
  leaving_.clear();
}

}  // namespace slate::daemon
