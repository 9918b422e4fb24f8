// The life of a session: setting up, serving, failing, tearing down. The commands are in
// session_*.cc.
#include "daemon/engine/session.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"

namespace slate::daemon {

using ipc::Command;
using ipc::CommandType;

namespace {

constexpr std::uint32_t kCommandsPerLook = 32;
constexpr std::int64_t kLookForClientNs = 100'000'000;

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
      channel_(std::move(spec_.fifos), std::move(spec_.segment)),
      streams_(device, completer, group_, [this](const Error& error) { on_device_error(error); }),
      client_(executor.add({.session = spec_.id,
                            .pid = spec_.pid,
                            .uid = spec_.uid,
                            .program = spec_.program,
                            .weight = spec_.weight,
                            .priority = spec_.priority,
                            .lane_ended = [this] { channel_.poke(); },
                            .lost_client = [this] { return lost_client(); }},
                           streams_, group_)),
      retirement_(streams_, completer, group_),
      held_(
          [this](std::uint64_t id) {
            const auto stream = streams_.find(id);
            return stream && (*stream)->blocking;
          },
          [this] { return group_.outstanding() >= kMostWatches; }),
      modules_(device, compiler, executor.form_maker(), spec_.id,
               [this](device::Address address, std::uint64_t bytes) {
                 return host_blocks_.owns(address, bytes);
               }),
      budget_(spec_.staging ? spec_.staging : std::make_shared<StagingBudget>()),
      staging_(device, channel_, *budget_),
      small_copies_(std::in_place, device),
      named_memory_(spec_.named_memory ? spec_.named_memory : std::make_shared<NamedBudget>()),
      host_blocks_(device, spec_.uid, HostBlocks::default_limit(), *named_memory_),
      exports_(spec_.exports ? spec_.exports : std::make_shared<Exports>()),
      imports_(exports_) {
  group_.tell(kMostWatches / 2, [this] { channel_.poke(); });
  streams_.publish([this](std::uint32_t progress, std::uint64_t position) {
    channel_.publish_completed(progress, position);
  });
  streams_.report_refusals([this](const Error& error) {
    log_debug("session {}: {}", spec_.id, error.message);
    (void)checked(std::unexpected(error));
    channel_.set_async_error(error);
  });
}

Session::~Session() {
  executor_.remove(client_);
}

void Session::run() {
  if (const auto ready = or_out_of_memory([this] { return set_up(); }); ready) {
    const auto served = or_out_of_memory([this]() -> Result<void> {
      serve();
      return {};
    });
    if (!served) end(served.error());
  } else if (!device_.lost()) {
    log_warning("session {}: {}", spec_.id, ready.error().message);
    channel_.fail(ready.error());
  }
  tear_down();
}

Result<void> Session::set_up() {
  if (!channel_.can_be_woken())
    return slate::fail(ErrorCode::kLimit, "no file descriptor is left for the session");
  auto memory = MemoryManager::make(device_, spec_.memory_limit);
  if (!memory) return std::unexpected(memory.error());
  memory_ = std::move(*memory);
  memory_seen_.store(memory_.get());
  objects_.emplace(device_, *memory_);
  modules_.loaded().charge_to(*memory_, [this](std::uint64_t bytes) {
    return when_there_is_room([&] { return memory_->charge(bytes); });
  });
  auto starting = SessionPhase::kStarting;
  phase_.compare_exchange_strong(starting, SessionPhase::kServing);
  return {};
}

void Session::serve() {
  Command command;
  while (true) {
    executor_.flush(*client_);
    const bool crowded = is_crowded();
    if (crowded || !channel_.wait_awake([this] { return look(true); })) completer_.leave(group_);
    // Without staging memory to give back, nothing wakes an idle session.
    const auto event =
        crowded ? channel_.wait_poked()
                : channel_.wait(staging_.active() ? kStagingIdle : std::chrono::milliseconds(-1));
    if (event == ipc::EngineChannel::Wait::kTimeout) {
      // A command that is kept may mean a slot that the client has filled and let go.
      if (held_.nothing_waits()) (void)staging_.reclaim();
      continue;
    }
    if (event == ipc::EngineChannel::Wait::kPoked) {
      if (!release_held()) return;
      continue;
    }
    if (event != ipc::EngineChannel::Wait::kCommand) return;
    // On a lost device it is left untouched, for the engine that comes next.
    if (!begun_.load() && device_.lost()) return;
    begun_.store(true);
    for (std::uint32_t taken = 1; !stopping_.load() && !is_crowded(); ++taken) {
      // What a dead client left in the ring is not begun any more.
      if (ending_.load() || (taken % kCommandsPerLook == 0 && lost_client())) return;
      const auto popped = channel_.try_pop(command);
      if (!popped) return end(popped.error());
      if (!*popped) break;
      if (!serve_command(command)) return;
      look(false);
      if (released_ && !release_held()) return;
    }
  }
}

/// Many ends are waited for, or a lot is kept that is to come after a launch that can be called
/// back: until that ends, the session takes no more commands. Natively, too, a program waits that
/// is so far ahead. Not while a host function runs, whose end is a command like others: what is
/// more work is kept then.
bool Session::is_crowded() const {
  const bool crowded =
      group_.outstanding() >= kMostWatches || (held_.crowded() && !in_lanes_.empty());
  return crowded && gates_.empty();
}

/// For the ends of its work on the device.
ipc::EngineChannel::Seen Session::look(bool waits) {
  using Seen = ipc::EngineChannel::Seen;
  if (completer_.look(group_, waits)) return Seen::kProgress;
  return group_.empty() ? Seen::kNothing : Seen::kWork;
}

/// Tells the client, and the log, why it is served no longer.
void Session::end(const Error& error) {
  log_warning("session {} (pid {}, {}) ended: {}", spec_.id, spec_.pid, spec_.program,
              error.message);
  channel_.fail(error);
}

/// False when the command broke the protocol: the session ends.
bool Session::serve_command(Command& command) {
  if (failed_.load()) {
    answer_failed(command);
    return true;
  }
  if (held_.must_wait(command)) return keep(command);
  return carry_out(command, channel_.position());
}

/// Keeps a command that has to wait; false when there are too many. Who only asks is told at once,
/// unless it is for an event's recording.
bool Session::keep(Command& command) {
  const ipc::CommandHeader header = command.header;
  if (header.type == CommandType::kQuery) {
    const auto query = command.as<ipc::Target>();
    if (query && query->when_recorded == 0) {
      const ipc::QueryReply not_yet{0, 0};
      channel_.reply(header.reply_slot, header.reply_sequence,
                     std::as_bytes(std::span(&not_yet, 1)));
      return true;
    }
  }
  HeldCommands::Kept waiting{std::move(command), channel_.position()};
  // A wait is for what was recorded when the client asked for it, not for what comes meanwhile.
  if (header.type == CommandType::kStreamWaitEvent) {
    const auto wait = waiting.command.as<ipc::EventStream>();
    if (wait && !held_.keeps_record(wait->event)) {
      if (const auto record = find_event(wait->event)) waiting.recording = (*record)->event;
    }
  }
  return end_unless(held_.keep(std::move(waiting)));
}

/// False, and the end of the session, if there are too many commands to keep.
bool Session::end_unless(const Result<void>& kept) {
  if (!kept) end(kept.error());
  return kept.has_value();
}

/// Carries out what was kept and need not wait any more; false when the session ends.
bool Session::release_held() {
  released_ = false;
  std::erase_if(in_lanes_, [this](const Hold& hold) {
    const auto stream = streams_.find(hold.stream);
    if (stream && (*stream)->active_lanes.load() > 0) return false;
    held_.release(hold.stream, hold.position);
    return true;
  });
  if (failed_.load()) {
    held_.give_up([this](const Command& command) { answer_failed(command); });
    return true;
  }
  return held_.drain([this](const HeldCommands::Kept& kept) { return carry_out(kept); });
}

bool Session::carry_out(const HeldCommands::Kept& kept) {
  waited_for_ = kept.recording;
  const bool goes_on = carry_out(kept.command, kept.position);
  waited_for_.reset();
  return goes_on;
}

bool Session::carry_out(const Command& command, std::uint64_t position) {
  const ipc::CommandHeader& header = command.header;
  const bool has_reply = header.reply_slot != ipc::kNoReply;
  // It may take long, and the policy must not wait for the end of launches that nobody watches.
  if (has_reply) executor_.flush(*client_);
  streams_.begin_command(position);
  Present present;
  const Reply& reply = present.reply;
  Result<void> done;
  if (has_reply && header.reply_slot >= ipc::kReplySlots) {
    done = slate::fail(ErrorCode::kProtocol, fmt::format("reply slot {}", header.reply_slot));
  } else {
    done = handle(command, present);
  }
  if (!done && done.error().code == ErrorCode::kProtocol) {
    end(done.error());
    return false;
  }
  if (!done && done.error().code == ErrorCode::kOutOfMemory && has_reply && held_.keeps_frees()) {
    return end_unless(held_.keep_for_room({command, position}));
  }
  if (!done) {
    log_debug("session {}: {}", spec_.id, done.error().message);
    if (has_reply) {
      channel_.reply_error(header.reply_slot, header.reply_sequence, done.error());
    } else {
      channel_.set_async_error(done.error());
    }
  } else if (has_reply && !reply.deferred) {
    channel_.reply(header.reply_slot, header.reply_sequence,
                   std::span(reply.bytes.data(), reply.size));
  }
  // The client may wait for the progress of every command on a stream, also one that was refused.
  if (!reply.unfinished && present.stream != nullptr && !streams_.command_submitted())
    streams_.end_command(*present.stream);
  return true;
}

/// Parses the command and finds its stream, once, and gives both to the command's handler.
template <typename Row>
Result<void> Session::dispatch(const Command& command, Present& present) {
  std::span<const std::byte> tail;
  const auto body = command.as<typename Row::Body>(&tail);
  if (!body) return std::unexpected(body.error());
  if constexpr (Row::kHasStream) {
    const auto stream = streams_.find(Row::stream_of(*body));
    if (!stream) {
      give_slot_back<Row>(command, stream.error());
      // A copy to the host is waited for, so its own call is told.
      if constexpr (Row::kType == ipc::CommandType::kCopyToHost) return {};
      return std::unexpected(stream.error());
    }
    present.stream = *stream;
  }
  const Call<Row::kType> call{command.header, *body, tail, present.stream, present.reply};
  static_assert(
      requires(Session session) { session.on(call); }, "a command without a handler");
  return on(call);
}

/// Without memory for a command, this session fails and nobody else: what it was about to change of
/// its own may be half done. What can be refused whole is so where it is done.
Result<void> Session::handle(const Command& command, Present& present) {
  bool whole = false;
  auto done = or_out_of_memory([&] {
    const auto unknown = [&]() -> Result<void> {
      const auto type = static_cast<unsigned>(command.header.type);
      return slate::fail(ErrorCode::kProtocol, fmt::format("unknown command {}", type));
    };
    auto result = ipc::visit_row<Result<void>>(
        command.header.type, [&]<typename Row>() { return dispatch<Row>(command, present); },
        unknown);
    whole = true;
    return result;
  });
  if (!whole) fail(done.error());
  return done;
}

/// A slot whose copy did not come about; nothing for other commands.
template <typename Row>
void Session::give_slot_back(const Command& command, const Error& error) {
  if constexpr (Row::kHoldsSlot) {
    const auto body = command.as<typename Row::Body>();
    if (!body) return;
    const ipc::SlotTurn turn = slot_of(*body);
    channel_.finish_staging(turn.slot, turn.sequence, error.code);
  }
}

void Session::answer_failed(const Command& command) {
  const Error error = sticky_error();
  if (command.header.reply_slot != ipc::kNoReply) {
    channel_.reply_error(command.header.reply_slot, command.header.reply_sequence, error);
  }
  ipc::visit_row<void>(
      command.header.type, [&]<typename Row>() { give_slot_back<Row>(command, error); }, [] {});
}

void Session::stop(std::string_view reason) {
  stopping_.store(true);
  // First, so that the launch that ends with the next line says no other reason.
  channel_.end(reason);
  executor_.abandon(*client_);
  channel_.stop();
}

void Session::fail(Error fault) {
  {
    const std::lock_guard lock(sticky_mutex_);
    if (sticky_.code != ErrorCode::kNone) return;
    sticky_ = fault;
    failed_.store(true);
  }
  auto serving = SessionPhase::kServing;
  phase_.compare_exchange_strong(serving, SessionPhase::kFailed);
  channel_.fail(fault);
  log_warning("session {} (pid {}, {}) failed: {}: {}", spec_.id, spec_.pid, spec_.program,
              error_name(fault.code), fault.message);
  executor_.abandon(*client_);
  streams_.cancel_all();
  channel_.poke();  // kept commands are answered
}

Error Session::sticky_error() const {
  const std::lock_guard lock(sticky_mutex_);
  return sticky_;
}

/// An error that came from executing work, on whatever thread saw it.
void Session::on_device_error(const Error& error) {
  if (device_.lost()) hooks_.device_lost(error);
  if (ending_.load() || stopping_.load()) return;
  Error fault = error;
  if (!is_sticky(fault.code)) fault.code = ErrorCode::kLaunchFailed;
  fail(std::move(fault));
}

Result<void> Session::checked(Result<void> result) {
  if (!result && (is_sticky(result.error().code) || device_.lost()))
    on_device_error(result.error());
  return result;
}

/// Whether the client is gone, for a thread that is too busy to be told. Asks now and then only.
bool Session::lost_client() {
  const std::int64_t now = now_ns();
  if (now - looked_ns_ < kLookForClientNs) return ending_.load();
  looked_ns_ = now;
  if (channel_.peer_is_gone()) ending_.store(true);
  return ending_.load();
}

/// Until nothing of this session runs any more. Where the device cannot cancel, that may take as
/// long as the kernels do.
void Session::wait_for_work() {
  executor_.abandon(*client_);
  executor_.flush(*client_);
  streams_.cancel_all();
  streams_.watch_ends();
  if (group_.wait_empty(kill_grace_)) return;
  log_warning("session {} (pid {}, {}): work goes on {} s after the client left: {}", spec_.id,
              spec_.pid, spec_.program, kill_grace_.count() / 1000,
              fmt::join(streams_.running_kernels(), ", "));
  hooks_.stuck(spec_.id);
  while (!group_.wait_empty(std::chrono::seconds(1))) {
  }
}

void Session::tear_down() {
  ending_.store(true);
  phase_.store(SessionPhase::kDraining);
  wait_for_work();
  executor_.drop_lanes(*client_);
  events_.clear();
  for (auto& replaced : replaced_events_) replaced.clear();
  // One rest for all the calls that take one.
  executor_.begin_rest();
  if (objects_) objects_->release();
  modules_.release();
  imports_.release();
  exports_->withdraw_all(spec_.id);
  // But for what other sessions have open: that goes with their last close.
  if (memory_) memory_->release();
  streams_.destroy_all();
  staging_.release();
  small_copies_.reset();
  host_blocks_.release();
  executor_.end_rest();
  SLATE_CHECK((!objects_ || objects_->count() == 0) && modules_.loaded().count() == 0 &&
              streams_.count() == 0);
}

SessionStatus Session::status() const {
  const MemoryManager* memory = memory_seen_.load();
  return {.id = spec_.id,
          .phase = phase_.load(),
          .memory_used = memory ? memory->charged() : 0,
          .memory_limit = spec_.memory_limit,
          .launches = streams_.launches(),
          .launches_running = streams_.launches_running(),
          .copies = copies_.load(),
          .bytes_to_device = bytes_to_device_.load(),
          .bytes_to_host = bytes_to_host_.load(),
          .streams = streams_.count(),
          .modules = modules_.loaded().count()};
}

std::vector<std::string> Session::running_kernels() const {
  std::vector<std::string> names = streams_.running_kernels();
  for (std::string& name : names) name += fmt::format(" ({}, pid {})", spec_.program, spec_.pid);
  return names;
}

}  // namespace slate::daemon
