#include "daemon/engine/session.h"

#include <fmt/format.h>

#include <thread>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/engine/resume_order.h"

namespace slate::daemon {

using ipc::Command;
using ipc::CommandType;

namespace {

constexpr std::uint32_t kCommandsPerLook = 32;

}  // namespace

std::string_view phase_name(SessionPhase phase) {
  switch (phase) {
    case SessionPhase::kStarting:
      return "starting";
    case SessionPhase::kServing:
      return "serving";
    case SessionPhase::kFailed:
      return "failed";
    case SessionPhase::kDraining:
      return "draining";
  }
  return "unknown";
}

Session::Session(device::Device& device, Compiler& compiler, Executor& executor,
                 Completer& completer, SessionSpec spec, SessionHooks hooks,
                 std::chrono::milliseconds kill_grace)
    : device_(device),
      executor_(executor),
      completer_(completer),
      spec_(std::move(spec)),
      hooks_(std::move(hooks)),
      kill_grace_(kill_grace),
      book_(spec_.book ? &spec_.book->book() : nullptr),
      channel_(std::move(spec_.ends), std::move(spec_.segment),
               book_ != nullptr ? book_->resume_at() : 0),
      watch_(channel_),
      faults_(
          device, [this](const Error& fault) { on_failure(fault); },
          [this](const Error& error) { hooks_.device_lost(error); }),
      parts_({.device = device,
              .compiler = compiler,
              .executor = executor,
              .completer = completer,
              .group = group_,
              .channel = channel_,
              .faults = faults_,
              .is_crowded = [this] { return group_.outstanding() >= kMostWatches; },
              .lost_client = [this] { return lost_client(); },
              .is_over = [this] { return stopping_.load() || channel_.peer_is_gone(); },
              .unsupported = hooks_.unsupported,
              .leaves_first = [this] { return departure_.leaves_first(); },
              .with_free =
                  [this](std::uint64_t bytes, const std::function<void()>& use) {
                    return gate_.with_free(bytes, use);
                  }},
             spec_),
      departure_({.session = spec_.id,
                  .hooks = hooks_,
                  .device = device,
                  .channel = channel_,
                  .faults = faults_,
                  .parts = parts_,
                  .book = book_,
                  .is_over = [this] { return stopping_.load(); },
                  .release_held = [this] { return commands_.release_held(); },
                  .finish_work = [this] { return finish_work(); },
                  .status = [this] { return status(); }}),
      gate_(
          {.session = spec_.id,
           .uid = spec_.uid,
           .memory = parts_.memory(),
           .reach = parts_.reach(),
           .finish_work = [this] { return finish_work(); },
           .is_over =
               [this] { return stopping_.load() || faults_.failed() || channel_.peer_is_gone(); }}),
      commands_({.session = spec_.id,
                 .channel = channel_,
                 .executor = executor,
                 .faults = faults_,
                 .parts = parts_,
                 .departure = departure_,
                 .gate = gate_,
                 .book = book_,
                 .end = [this](const Error& reason) { (void)end(reason); }}),
      resumption_({.spec = spec_,
                   .executor = executor,
                   .group = group_,
                   .channel = channel_,
                   .faults = faults_,
                   .parts = parts_,
                   .commands = commands_,
                   .end = [this](const Error& reason) { (void)end(reason); }}) {
  group_.tell(kMostWatches / 2, [this] { channel_.poke(); });
}

Session::~Session() = default;

void Session::run() {
  if (const auto ready = or_out_of_memory([this] { return set_up(); }); ready) {
    const auto served = or_out_of_memory([this]() -> Result<void> {
      if (resumption_.run()) serve();
      return {};
    });
    if (!served) (void)end(served.error());
  } else if (!device_.lost()) {
    log_of_user(spec_.uid, LogLevel::kWarning, "session {}: {}", spec_.id, ready.error().message);
    channel_.fail(ready.error());
  }
  tear_down();
}

Result<void> Session::set_up() {
  if (!channel_.can_be_woken())
    return slate::fail(ErrorCode::kLimit, "no file descriptor is left for the session");
  const bool again = resumption_.has_past();
  if (again) {
    resumption_.settle();
    begun_.store(true);
  }
  const auto made =
      again ? parts_.set_up_again(spec_.memory_limit, std::move(spec_.account), spec_.memory_wait)
            : parts_.set_up(spec_.memory_limit, std::move(spec_.account), spec_.memory_wait);
  if (!made && again) {
    return slate::fail(ErrorCode::kUnavailable,
                       "the next engine could not go on with the session: " + made.error().message);
  }
  if (!made) return made;
  auto starting = SessionPhase::kStarting;
  phase_.compare_exchange_strong(starting, SessionPhase::kServing);
  return {};
}

void Session::serve() {
  while (true) {
    if (departure_.is_wanted() && departure_.try_to_leave()) return;
    if (!faults_.failed()) (void)faults_.checked(gate_.tend());
    if (commands_.has_put_back() && departure_.serves() && !commands_.serve_put_back()) return;
    executor_.flush(parts_.client(), StreamWatches::Watched::kDue);
    const bool crowded = is_crowded() || commands_.has_put_back();
    if (crowded || !channel_.wait_awake([this] { return look_awake(); })) {
      executor_.flush(parts_.client());
      completer_.leave(group_);
    }
    // Without staging memory to give back, nothing wakes an idle session.
    const auto event =
        crowded ? channel_.wait_poked()
                : channel_.wait(parts_.staging().active() ? kStagingIdle
                                                          : std::chrono::milliseconds(-1));
    if (event == ipc::EngineChannel::Wait::kTimeout) {
      // A command that is kept may mean a slot that the client has filled and let go.
      if (parts_.held().nothing_waits()) (void)parts_.staging().reclaim();
      continue;
    }
    if (event == ipc::EngineChannel::Wait::kPoked) {
      if (!commands_.release_held()) return;
      (void)parts_.go_on();
      continue;
    }
    if (event != ipc::EngineChannel::Wait::kCommand) return;
    // On a lost device it is left untouched, for the engine that comes next.
    if (!begun_.load() && device_.lost()) return;
    begun_.store(true);
    if (departure_.is_wanted() && departure_.try_to_leave()) return;
    if (!serve_commands()) return;
  }
}

/// Carries out what is in the ring; false when the session ends.
bool Session::serve_commands() {
  Command command;
  for (std::uint32_t taken = 1; !stopping_.load() && !is_crowded(); ++taken) {
    // What a dead client left in the ring is not begun any more.
    if (watch_.ends() || (taken % kCommandsPerLook == 0 && lost_client())) return false;
    const auto popped = channel_.try_pop(command);
    if (!popped) return end(popped.error());
    if (!*popped) return true;
    if (!commands_.serve(command)) return false;
    look(false);
    if (parts_.can_go_on()) (void)parts_.go_on();
    if (parts_.host_functions().take_opened() && !commands_.release_held()) return false;
    if (!departure_.serves()) [[unlikely]]
      return true;
  }
  return true;
}

/// Whether the session takes no more commands for now: too many ends are waited for, or too much is
/// kept behind a launch that can be called back. A native program that is so far ahead waits, too.
/// False while a host function runs, whose end is itself a command: commands that are more work are
/// kept then.
bool Session::is_crowded() const {
  const bool crowded = group_.outstanding() >= kMostWatches ||
                       (parts_.held().crowded() && parts_.launches().hold_any());
  return crowded && parts_.host_functions().none();
}

/// Looks for ends, and has those watched that the client waits for, or whose turn it is.
ipc::EngineChannel::Seen Session::look_awake() {
  const ipc::EngineChannel::Seen seen = look(true);
  using enum StreamWatches::Watched;
  executor_.flush(parts_.client(), channel_.client_waits() ? kAll : kDue);
  return seen;
}

/// Looks for ends of the session's work on the device.
ipc::EngineChannel::Seen Session::look(bool waits) {
  using Seen = ipc::EngineChannel::Seen;
  if (completer_.look(group_, waits)) return Seen::kProgress;
  return group_.empty() ? Seen::kNothing : Seen::kWork;
}

/// Tells the client, and the log, why it is served no longer. Returns false.
bool Session::end(const Error& error) {
  log_of_user(spec_.uid, LogLevel::kWarning, "session {} (uid {}, pid {}, {}) ended: {}", spec_.id,
              spec_.uid, spec_.pid, spec_.program, error.message);
  channel_.fail(error);
  return false;
}

void Session::stop(std::string_view reason) {
  stopping_.store(true);
  faults_.ignore();
  // First, so that the launch that ends with the next line says no other reason.
  channel_.end(reason);
  executor_.abandon(parts_.client());
  channel_.stop();
}

/// The session has got its lasting error, on whatever thread.
void Session::on_failure(const Error& fault) {
  auto serving = SessionPhase::kServing;
  phase_.compare_exchange_strong(serving, SessionPhase::kFailed);
  channel_.fail(fault);
  log_of_user(spec_.uid, LogLevel::kWarning, "session {} (uid {}, pid {}, {}) failed: {}: {}",
              spec_.id, spec_.uid, spec_.pid, spec_.program, error_name(fault.code), fault.message);
  executor_.abandon(parts_.client());
  parts_.streams().cancel_all();
  channel_.poke();  // kept commands are answered
}

bool Session::lost_client() {
  if (watch_.is_gone()) faults_.ignore();
  return watch_.ends();
}

/// Whether no work of the session is left on the device. Waits a moment for that. A launch that was
/// called back is not there, but goes on later.
bool Session::finish_work() {
  constexpr std::chrono::milliseconds kMoment{5};
  executor_.flush(parts_.client());
  parts_.streams().watch_ends();
  completer_.leave(group_);
  const bool is_empty = group_.wait_empty(kMoment);
  parts_.launches().release_ended();
  if (is_empty && parts_.launches().hold_any()) std::this_thread::sleep_for(kMoment);
  return is_empty && !parts_.launches().hold_any();
}

/// Waits until no work of this session runs. Where the device cannot cancel work, that may take as
/// long as the kernels do.
void Session::wait_for_work() {
  executor_.abandon(parts_.client());
  executor_.flush(parts_.client());
  parts_.streams().cancel_all();
  parts_.streams().watch_ends();
  if (group_.wait_empty(kill_grace_)) return;
  log_of_user(spec_.uid, LogLevel::kWarning,
              "session {} (uid {}, pid {}, {}): work goes on {} s after the client left: {}",
              spec_.id, spec_.uid, spec_.pid, spec_.program, kill_grace_.count() / 1000,
              fmt::join(parts_.streams().running_kernels(), ", "));
  hooks_.stuck(spec_.id);
  while (!group_.wait_empty(std::chrono::seconds(1))) {
  }
}

void Session::tear_down() {
  // The next engine makes again what goes here.
  if (device_.lost() && book_ != nullptr) book_->freeze();
  if (spec_.order) spec_.order->end(spec_.id);
  watch_.end();
  faults_.ignore();
  phase_.store(SessionPhase::kDraining);
  wait_for_work();
  parts_.release();
}

SessionStatus Session::status() const {
  const CopyCommands::Counts& copies = parts_.copies();
  return {.id = spec_.id,
          .phase = phase_.load(),
          .memory_used = parts_.memory_used(),
          .memory_limit = spec_.memory_limit,
          .pinned_used = parts_.pinned_used(),
          .code_memory = parts_.code_memory(),
          .places = parts_.memory_places(),
          .launches = parts_.streams().launches(),
          .launches_running = parts_.streams().launches_running(),
          .copies = copies.copies.load(),
          .bytes_to_device = copies.bytes_to_device.load(),
          .bytes_to_host = copies.bytes_to_host.load(),
          .streams = parts_.streams().count(),
          .modules = parts_.module_count()};
}

std::vector<std::string> Session::running_kernels() const {
  std::vector<std::string> names = parts_.streams().running_kernels();
  for (std::string& name : names) name += fmt::format(" ({}, pid {})", spec_.program, spec_.pid);
  return names;
}

}  // namespace slate::daemon
