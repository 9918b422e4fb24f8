#include "daemon/supervisor/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/log.h"
#include "daemon/supervisor/session_search.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopTimeout = 5s;
constexpr const char* kStopReason = "slated is stopping";

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::make(const Config& config,
                                                     const std::string& program, int stop_fd,
                                                     Reload reload) {
  ServiceManager manager;
  auto socket = manager.take_socket();
  if (!socket) return std::unexpected(socket.error());
  const bool all = config.serve_everybody || *socket || ::geteuid() == 0;
  using Guests = ipc::MeetingPoint::Guests;
  auto point =
      ipc::MeetingPoint::create(ipc::runtime_directory(config.runtime_dir),
                                all ? Guests::kEverybody : Guests::kOwnUser, std::move(*socket));
  if (!point) return std::unexpected(point.error());
  Config known = config;
  known.serve_everybody = all;
  return std::unique_ptr<Supervisor>(new Supervisor(known, program, stop_fd, std::move(manager),
                                                    std::move(*point), std::move(reload)));
}

Supervisor::Supervisor(const Config& config, const std::string& program, int stop_fd,
                       ServiceManager manager, ipc::MeetingPoint point, Reload reload)
    : config_(config),
      stop_fd_(stop_fd),
      reload_(std::move(reload)),
      manager_(std::move(manager)),
      reception_(
          std::move(point),
          [this](const ipc::Hello& hello, ipc::Visitor visitor) {
            const std::string refusal = refusal_of(visitor.uid);
            registry_.greet(hello, std::move(visitor), keeper_.active(), refusal);
          },
          [this](const ipc::Hello&, ipc::Visitor visitor) { desk_.greet(std::move(visitor)); }),
      rules_(config),
      programs_(state_directory(config.state_dir)),
      registry_(reception_.directory(), rules_, programs_),
      settings_(rules_, programs_, registry_),
      desk_({.describe = [this](const std::string& report,
                                std::uint32_t asker) { return describe(report, asker); },
             .shows_profiles = [this](std::uint32_t asker) { return shows_all_to(asker); },
             .change =
                 [this](const ipc::ControlRequest& request, const std::string& text,
                        std::uint32_t asker) {
                   return settings_.change(request, text, asker, keeper_.active());
                 },
             .end =
                 [this](const std::string& text, std::uint32_t asker) {
                   return end_sessions(registry_, text, asker, keeper_.active());
                 }}),
      keeper_(program, config,
              {.ready =
                   [this] {
                     device_ = keeper_.active()->device;
                     registry_.engine_ready(*keeper_.active());
                   },
               .message = [this](LinkMessage message) { engine_message(std::move(message)); },
               .died = [this](const Error& cause,
                              std::uint64_t culprit) { engine_died(cause, culprit); }}) {}

Result<void> Supervisor::run() {
  keeper_.service();
  manager_.tell_ready();
  while ((poll_now(stop_fd_, POLLIN) & POLLIN) == 0) {
    PollSet polls;
    polls.add(stop_fd_, POLLIN);
    if (reload_.fd >= 0) polls.add(reload_.fd, POLLIN);
    reception_.add_to(polls);
    keeper_.add_to(polls);
    registry_.add_to(polls, keeper_.active());
    desk_.add_to(polls);
    manager_.add_to(polls);
    polls.sleep();
    serve_once();
    if (keeper_.hopeless()) return std::unexpected(*keeper_.hopeless());
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
  keeper_.service();
  reception_.service();
  registry_.service(keeper_.active());
  desk_.service(keeper_.active());
  if (!keeper_.trouble().empty()) {
    registry_.refuse_waiting({ErrorCode::kInitialization, keeper_.trouble()});
  }
}

void Supervisor::engine_message(LinkMessage message) {
  if (message.header.type == LinkType::kStatusReport) return desk_.report_came(message);
  const LinkHeader& header = message.header;
  const Book::Key key{static_cast<BookKind>(header.flags), header.number};
  if (header.type == LinkType::kHold && message.fds.size() == 1)
    return registry_.hold(header.session, key, std::move(message.fds.front()));
  if (header.type == LinkType::kLetGo) return registry_.let_go(header.session, key);
  if (header.type == LinkType::kFence && keeper_.active() != nullptr) {
    (void)keeper_.active()->link().try_send({.type = LinkType::kFence, .number = header.number});
    return;
  }
  if (message.header.type == LinkType::kBlame) return blame(message.header.session, message.text);
  if (message.header.type != LinkType::kSessionEnded) return;
  registry_.session_ended(message.header.session, message.text);
  past_launches_ += message.header.number;
  if ((message.header.flags & kSessionFaulted) != 0) ++past_faults_;
}

void Supervisor::engine_died(const Error& cause, std::uint64_t culprit) {
  ++past_faults_;
  if (culprit != 0) {
    blame(culprit, cause.message);
  } else if (const auto uid = registry_.only_user()) {
    blame_user(*uid, cause.message);
  }
  registry_.engine_died(cause, culprit);
  desk_.engine_died();
}

/// Why the user's programs are not welcome now; empty: they are.
std::string Supervisor::refusal_of(std::uint32_t uid) const {
  if (stopping_) return kStopReason;
  if (const auto barred = blame_.barred(uid, Clock::now())) return bar_reason(*barred);
  return keeper_.trouble();
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
  keeper_.stop(kStopReason);
  const auto deadline = Clock::now() + kStopTimeout;
  while (!keeper_.all_ended() && Clock::now() < deadline) {
    PollSet polls;
    polls.add_deadline(deadline);
    reception_.add_to(polls);
    keeper_.add_to(polls);
    desk_.add_to(polls);
    polls.sleep();
    serve_once();
  }
  registry_.end_all(kStopReason);
  keeper_.kill_all();
}

bool Supervisor::shows_all_to(std::uint32_t asker) const {
  return !rules_.config().private_status || is_administrator(asker);
}

std::string Supervisor::describe(const std::string& engine_report, std::uint32_t asker) const {
  return status_text({.version = SLATE_VERSION,
                      .started = started_,
                      .device = device_ ? &*device_ : nullptr,
                      .engine_pid = keeper_.pid(),
                      .restarts = keeper_.restarts(),
                      .last_fault = keeper_.last_fault(),
                      .past_launches = past_launches_,
                      .past_faults = past_faults_,
                      .barred = blame_.all_barred(Clock::now()),
                      .only_of = shows_all_to(asker) ? std::nullopt : std::optional(asker)},
                     registry_, engine_report);
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

int run_supervisor(const Config& config, std::function<std::optional<Config>()> read) {
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
  auto supervisor = Supervisor::make(config, "/proc/self/exe", stop_fd.get(),
                                     {.fd = reload_fd.get(), .read = std::move(read)});
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
