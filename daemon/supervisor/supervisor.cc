#include "daemon/supervisor/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/log.h"
#include "base/spawn.h"
#include "daemon/supervisor/session_search.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopTimeout = 5s;
/// How long questions and visitors of this moment may take before a newer slated takes over.
constexpr auto kUpgradePatience = 1s;
constexpr const char* kStopReason = "slated is stopping";

/// Where a link leads now: an upgrade puts another file there.
std::string on_disk(const std::string& program) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(program, error);
  return error ? program : target.string();
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::make(const Config& config,
                                                     const std::string& program, int stop_fd,
                                                     Reload reload, const nlohmann::json& state) {
  ServiceManager manager;
  auto socket = manager.take_socket();
  if (!socket) return std::unexpected(socket.error());
  const bool given = state.is_null() ? static_cast<bool>(*socket) : state.at("given").get<bool>();
  const bool all = config.serve_everybody || given || ::geteuid() == 0;
  using Guests = ipc::MeetingPoint::Guests;
  const std::string directory = ipc::runtime_directory(config.runtime_dir);
  auto point = state.is_null()
                   ? ipc::MeetingPoint::create(
                         directory, all ? Guests::kEverybody : Guests::kOwnUser, std::move(*socket))
                   : ipc::MeetingPoint::again(directory, Handover::take(state.at("socket")),
                                              Handover::take(state.at("lock")), given);
  if (!point) return std::unexpected(point.error());
  Config known = config;
  known.serve_everybody = all;
  std::unique_ptr<Supervisor> made(new Supervisor(known, program, stop_fd, std::move(manager),
                                                  std::move(*point), std::move(reload)));
  if (state.is_null()) return made;
  if (const auto taken = made->take_over(state); !taken) return std::unexpected(taken.error());
  return made;
}

Supervisor::Supervisor(const Config& config, const std::string& program, int stop_fd,
                       ServiceManager manager, ipc::MeetingPoint point, Reload reload)
    : config_(config),
      program_(on_disk(program)),
      stop_fd_(stop_fd),
      reload_(std::move(reload)),
      manager_(std::move(manager)),
      reception_(
          std::move(point),
          [this](const ipc::Hello& hello, ipc::Visitor visitor) {
            const std::string refusal = refusal_of(visitor.uid);
            registry_.greet(hello, std::move(visitor), refusal);
          },
          [this](const ipc::Hello&, ipc::Visitor visitor) { desk_.greet(std::move(visitor)); }),
      rules_(config),
      programs_(state_directory(config.state_dir)),
      registry_(reception_.directory(), rules_, programs_, engines_),
      settings_(rules_, programs_, registry_),
      desk_(
          {.describe = [this](const std::vector<std::string>& reports,
                              std::uint32_t asker) { return describe(reports, asker); },
           .shows_profiles = [this](std::uint32_t asker) { return shows_all_to(asker); },
           .change = [this](const ipc::ControlRequest& request, const std::string& text,
                            std::uint32_t asker) { return settings_.change(request, text, asker); },
           .change_sessions =
               [this](ipc::ControlVerb verb, const std::string& text, std::uint32_t asker) {
                 return change_sessions(registry_, verb, text, asker);
               },
           .renew = [this](ipc::ControlVerb verb) { return renew(verb); }}),
      engines_(program, config, engine_events(),
               [this](const Domain& domain) { return registry_.has_sessions(domain); }) {}

EngineKeeper::Events Supervisor::engine_events() {
  return {.ready = [this](EngineProcess& engine) { engine_ready(engine); },
          .message = [this](EngineProcess& engine,
                            LinkMessage message) { engine_message(engine, std::move(message)); },
          .died = [this](const EngineProcess& engine,
                         const Error& cause) { engine_died(engine, cause); },
          .is_in_use = [this](std::uint64_t serial) { return registry_.uses(serial); }};
}

Result<void> Supervisor::run() {
  engines_.service();
  manager_.tell_ready();
  while ((poll_now(stop_fd_, POLLIN) & POLLIN) == 0) {
    PollSet polls;
    polls.add(stop_fd_, POLLIN);
    if (reload_.fd >= 0) polls.add(reload_.fd, POLLIN);
    reception_.add_to(polls);
    engines_.add_to(polls);
    registry_.add_to(polls);
    desk_.add_to(polls);
    manager_.add_to(polls);
    if (upgrade_by_) polls.add_deadline(*upgrade_by_);
    polls.sleep();
    serve_once();
    if (engines_.common().hopeless()) return std::unexpected(*engines_.common().hopeless());
  }
  stop();
  return {};
}

/// What new sessions get changes. What the engine was told at its start stays until its next start.
void Supervisor::reload() {
  if (reload_.fd < 0 || (poll_now(reload_.fd, POLLIN) & POLLIN) == 0) return;
  std::array<char, 4096> signals;
  while (::read(reload_.fd, signals.data(), signals.size()) < 0 && errno == EINTR) {
  }
  auto config = reload_.read();
  if (!config) return log_error("the configuration has a mistake: the old one stays");
  config->serve_everybody = config_.serve_everybody;
  rules_ = UserRules(*config);
  log_info("the configuration was read again");
}

void Supervisor::serve_once() {
  reload();
  manager_.service();
  engines_.service();
  reception_.service();
  registry_.service();
  desk_.service(engines_.all());
  answer_engines();
  continue_upgrade();
}

/// New engines take the places of all, of the program that is installed by now and with the
/// configuration as it was read last. Sessions go on in them, but for those that cannot leave.
Result<std::string> Supervisor::renew(ipc::ControlVerb verb) {
  engines_.renew(program_, rules_.config());
  upgrading_ = verb == ipc::ControlVerb::kUpgrade;
  upgrade_by_.reset();
  nlohmann::json stay = nlohmann::json::array();
  for (const auto& [id, record] : registry_.sessions()) {
    const auto why = record.book ? record.book->why_not() : std::nullopt;
    if (!why) continue;
    stay.push_back({{"id", id}, {"pid", record.pid}, {"program", record.program}, {"why", *why}});
  }
  log_info("engines are renewed, by {}; {} sessions cannot leave theirs", program_, stay.size());
  return nlohmann::json{{"stay", stay}, {"upgrades", upgrades_}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Once the engines are those of the new program, which so has shown that it understands this one,
/// it takes this process over.
void Supervisor::continue_upgrade() {
  if (!upgrading_ || engines_.renews()) return;
  if (!engines_.are_renewed()) {
    upgrading_ = false;
    return log_error("the upgrade is given up, as the new engines did not start");
  }
  if (!upgrade_by_) upgrade_by_ = Clock::now() + kUpgradePatience;
  const bool is_idle = !desk_.has_guests() && !reception_.has_guests();
  if (!is_idle && Clock::now() < *upgrade_by_) return;
  upgrading_ = false;
  upgrade_by_.reset();
  if (can_be_replaced()) hand_over();
}

/// Whether the new program understands this one's arguments and files.
bool Supervisor::can_be_replaced() const {
  std::vector<std::string> words = reload_.arguments;
  words.emplace_back("--print-config");
  Spawn spawn;
  posix_spawn_file_actions_addopen(spawn.files(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto started = spawn.start(program_, words);
  int status = 0;
  const bool good = started && ::waitpid(*started, &status, 0) == *started && WIFEXITED(status) &&
                    WEXITSTATUS(status) == 0;
  if (!good) log_error("the upgrade is given up: {} does not take this slated's options", program_);
  return good;
}

void Supervisor::hand_over() {
  Handover handover;
  const auto since = std::chrono::nanoseconds(started_.time_since_epoch()).count();
  const nlohmann::json state = {
      {"socket", handover.pass(reception_.point().fd())},
      {"lock", handover.pass(reception_.point().lock_fd())},
      {"given", reception_.point().is_given()},
      {"watchdog_ns", std::chrono::nanoseconds(manager_.watchdog()).count()},
      {"engines", engines_.hand_over(handover)},
      {"registry", registry_.hand_over(handover)},
      {"blame", blame_.hand_over()},
      {"started", since},
      {"past_launches", past_launches_},
      {"past_faults", past_faults_},
      {"upgrades", upgrades_ + 1}};
  log_info("{} takes over, with {} sessions", program_, registry_.sessions().size());
  const Error why = handover.run(program_, reload_.arguments, state);
  log_error("the upgrade is given up: {}", why.message);
}

Result<void> Supervisor::take_over(const nlohmann::json& state) {
  manager_.go_on(std::chrono::nanoseconds(state.at("watchdog_ns").get<std::int64_t>()));
  engines_.take_over(state.at("engines"));
  if (const auto taken = registry_.take_over(state.at("registry")); !taken) return taken;
  // Of a slated that did not pass it on, none.
  if (state.contains("blame")) blame_.take_over(state.at("blame"));
  started_ = Clock::time_point(std::chrono::nanoseconds(state.at("started").get<std::int64_t>()));
  past_launches_ = state.at("past_launches").get<std::uint64_t>();
  past_faults_ = state.at("past_faults").get<std::uint64_t>();
  upgrades_ = state.at("upgrades").get<std::uint64_t>();
  for (const auto& [domain, engine] : engines_.all()) device_ = engine->device;
  log_info("slated {} has taken over, with {} sessions", SLATE_VERSION,
           registry_.sessions().size());
  return {};
}

void Supervisor::engine_ready(EngineProcess& engine) {
  device_ = engine.device;
  if (const auto domain = engines_.domain_of(engine.serial)) registry_.leave_for(*domain, engine);
}

void Supervisor::engine_message(EngineProcess& engine, LinkMessage message) {
  if (message.header.type == LinkType::kStatusReport)
    return desk_.report_came(engine.serial, message);
  const LinkHeader& header = message.header;
  const Book::Key key{static_cast<BookKind>(header.flags), header.number};
  if (header.type == LinkType::kHold && message.fds.size() == 1)
    return registry_.hold(header.session, key, std::move(message.fds.front()));
  if (header.type == LinkType::kLetGo) return registry_.let_go(header.session, key);
  if (header.type == LinkType::kFence) {
    unanswered_.emplace_back(engine.serial, header.number);
    return answer_engines();
  }
  if (header.type == LinkType::kNeedsRoom) {
    makes_room_ |= engines_.make_room();
    return;
  }
  if (header.type == LinkType::kBlame) return blame(header.session, message.text);
  if (header.type == LinkType::kSessionStays)
    return registry_.session_stays(header.session, message.text);
  if (header.type == LinkType::kSessionWaits) return registry_.session_waits(header.session);
  if (header.type == LinkType::kUnfenced)
    return registry_.session_unfenced(header.session, (header.flags & kWaitsForWord) != 0);
  const bool left = header.type == LinkType::kSessionLeft;
  if (!left && header.type != LinkType::kSessionEnded) return;
  past_launches_ += header.number;
  if (left) return registry_.session_left(header.session, engine.serial);
  registry_.session_ended(header.session, engine.serial, message.text);
  if ((header.flags & kSessionFaulted) != 0) ++past_faults_;
}

/// What an engine has asked for is done once the processes have ended that had the memory.
void Supervisor::answer_engines() {
  if (makes_room_ && engines_.gives_back()) return;
  makes_room_ = false;
  for (const auto& [serial, number] : std::exchange(unanswered_, {})) {
    if (const EngineProcess* const engine = engines_.find(serial))
      (void)engine->link().try_send({.type = LinkType::kFence, .number = number});
  }
}

void Supervisor::engine_died(const EngineProcess& engine, const Error& cause) {
  ++past_faults_;
  if (engine.culprit != 0) {
    blame(engine.culprit, cause.message);
  } else if (const auto uid = registry_.only_user(engine.serial)) {
    blame_user(*uid, cause.message);
  }
  registry_.engine_died(engine, cause);
  desk_.engine_died(engine.serial);
}

/// Why the user's programs are not welcome now; empty: they are.
std::string Supervisor::refusal_of(std::uint32_t uid) const {
  if (stopping_) return kStopReason;
  if (const auto barred = blame_.barred(uid, Clock::now())) return bar_reason(*barred);
  return engines_.trouble({});
}

void Supervisor::blame(std::uint64_t session, const std::string& what) {
  const auto found = registry_.sessions().find(session);
  if (found == registry_.sessions().end()) return;
  const SessionRecord& record = found->second;
  blame_user(record.uid, fmt::format("session {} ({}): {}", session, record.program, what));
}

/// Administrators are never kept out. Nor is he who harmed nobody else, as when he looks for a
/// mistake of his own.
void Supervisor::blame_user(std::uint32_t uid, const std::string& what) {
  const Config& config = rules_.config();
  if (!registry_.has_others_than(uid)) return;
  log_warning("uid {} is blamed: {}", uid, what);
  if (is_administrator(uid)) return;
  const auto bar = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(config.bar_seconds));
  const auto counted =
      blame_.count(uid, what, {.bar_after = config.bar_after, .bar = bar}, Clock::now());
  if (counted.barred) {
    log_warning("uid {} is barred for {} s after {} incidents", uid, config.bar_seconds,
                counted.incidents);
  }
}

/// The engine tells its sessions and ends; whoever is left then is told from here.
void Supervisor::stop() {
  stopping_ = true;
  manager_.tell_stopping();
  log_info("stopping, {} sessions", registry_.sessions().size());
  registry_.refuse_waiting({ErrorCode::kUnavailable, kStopReason});
  engines_.stop(kStopReason);
  const auto deadline = Clock::now() + kStopTimeout;
  while (!engines_.all_ended() && Clock::now() < deadline) {
    PollSet polls;
    polls.add_deadline(deadline);
    reception_.add_to(polls);
    engines_.add_to(polls);
    desk_.add_to(polls);
    polls.sleep();
    serve_once();
  }
  registry_.end_all(kStopReason);
  engines_.kill_all();
}

bool Supervisor::shows_all_to(std::uint32_t asker) const {
  return !rules_.config().private_status || is_administrator(asker);
}

std::string Supervisor::describe(const std::vector<std::string>& reports, std::uint32_t asker) {
  StatusFacts facts{.version = SLATE_VERSION,
                    .started = started_,
                    .device = device_ ? &*device_ : nullptr,
                    .engine_pid = engines_.common().pid(),
                    .spares = engines_.common().spares(),
                    .spare_bytes = engines_.common().spare_bytes(),
                    .renews = engines_.renews() || upgrading_,
                    .is_renewed = engines_.are_renewed(),
                    .upgrades = upgrades_,
                    .restarts = engines_.restarts(),
                    .last_fault = engines_.last_fault(),
                    .past_launches = past_launches_,
                    .past_faults = past_faults_,
                    .barred = blame_.all_barred(Clock::now()),
                    .only_of = shows_all_to(asker) ? std::nullopt : std::optional(asker)};
  for (const auto& [domain, engine] : engines_.all())
    facts.engines.push_back({domain, engine->pid(), engines_.time_of(engine->serial)});
  return status_text(facts, registry_, reports);
}

namespace {

/// A session takes a few descriptors in both processes, and the usual limit is meant for programs
/// that use select(). Engines inherit it.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) log_debug("the limit of descriptors stays");
}

}  // namespace

int run_supervisor(const Config& config, std::vector<std::string> arguments,
                   std::function<std::optional<Config>()> read) {
  raise_descriptor_limit();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigset_t reloads;
  sigemptyset(&reloads);
  sigaddset(&reloads, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  sigprocmask(SIG_BLOCK, &reloads, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const UniqueFd stop_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  const UniqueFd reload_fd(signalfd(-1, &reloads, SFD_CLOEXEC | SFD_NONBLOCK));
  const auto state = Handover::received();
  if (!state) {
    log_error("{}", state.error().message);
    return 1;
  }
  auto supervisor = Supervisor::make(
      config, "/proc/self/exe", stop_fd.get(),
      {.fd = reload_fd.get(), .read = std::move(read), .arguments = std::move(arguments)}, *state);
  if (!supervisor) {
    log_error("{}", supervisor.error().message);
    return 1;
  }
  log_info("serving {} at {}", config.device, (*supervisor)->runtime_dir());
  if (const auto done = (*supervisor)->run(); !done) {
    log_error("{}", done.error().message);
    return 1;
  }
  return 0;
}

}  // namespace slate::daemon
