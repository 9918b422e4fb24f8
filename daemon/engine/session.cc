#include "daemon/engine/session.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/engine/resume_order.h"

namespace slate::daemon {

using ipc::Command;
using ipc::CommandType;

namespace {

constexpr std::uint32_t kCommandsPerLook = 32;
constexpr std::int64_t kLookForClientNs = 100'000'000;

bool ends_an_object(CommandType type) {
  return ipc::visit_row<bool>(
      type, []<typename Row>() { return Row::kObject == ipc::Object::kEnds; },
      [] { return false; });
}

std::optional<ipc::SlotTurn> turn_of(const Command& command) {
  if (command.header.type != CommandType::kCopy) return std::nullopt;
  const auto copy = command.as<ipc::Copy>();
  return copy ? slot_of(*copy) : std::nullopt;
}

bool copies(CommandType type) {
  return type == CommandType::kCopy || type == CommandType::kCopyInline;
}

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
              .leaves_first = [this] { return leaves_first(); }},
             spec_) {
  group_.tell(kMostWatches / 2, [this] { channel_.poke(); });
}

Session::~Session() = default;

void Session::run() {
  if (const auto ready = or_out_of_memory([this] { return set_up(); }); ready) {
    const auto served = or_out_of_memory([this]() -> Result<void> {
      if (resume()) serve();
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
  const bool again = spec_.book && spec_.book->has_past();
  if (again) {
    channel_.skip_answered();
    for (const Book::Open& open : book_->open()) close_if_done(open);
    spec_.book->drop_unfinished(channel_.position());
    book_->taken(channel_.position());  // later no answer and no journal may say so
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

/// Carries out again what another engine had taken and may not have finished. False: the session
/// ends.
bool Session::resume() {
  if (!spec_.book || !spec_.book->has_past()) {
    if (spec_.order) spec_.order->wait_for_all();
    return true;
  }
  if (spec_.is_suspect) spec_.order->begin(spec_.id);
  const bool done = resume_past();
  if (spec_.is_suspect) {
    executor_.flush(parts_.client());
    parts_.streams().watch_ends();
    (void)group_.wait_empty(kSuspectTime);
    spec_.order->end(spec_.id);
  }
  if (spec_.order) spec_.order->wait_for_all();
  return done;
}

bool Session::resume_past() {
  const std::vector<Book::Open> all = book_->open();
  const auto next = channel_.peek();
  again_until_ = next ? next->position : channel_.position();
  if (const auto why_not = parts_.why_not_again(all)) {
    faults_.fail(
        {ErrorCode::kLaunchFailed,
         "the engine was replaced while work of the session may have been half done, which "
         "cannot be done again: " +
             *why_not});
  }
  for (const Book::Open& open : all) {
    if (!open.done && !do_again(open)) return false;
  }
  if (const auto freed = parts_.free_retired(); !freed) return end(freed.error());
  log_of_user(spec_.uid, LogLevel::kInfo, "session {} (uid {}, pid {}, {}) goes on in this engine",
              spec_.id, spec_.uid, spec_.pid, spec_.program);
  return true;
}

/// A command may be done without the book's saying so: the client has its answer, or its slot.
void Session::close_if_done(const Book::Open& open) {
  const auto turn = turn_of(open.command);
  const bool slot_is_done = turn && channel_.is_finished(*turn);
  if (slot_is_done) book_->done(open.stream, open.position);  // its stream had come as far
  if (slot_is_done || channel_.is_answered(open.command.header)) book_->close(open.position);
}

bool Session::do_again(const Book::Open& open) {
  if (faults_.failed()) {
    answer_failed(open.command);
    return true;
  }
  const HeldCommands::Kept again{open.command, open.position};
  if (parts_.held().must_wait(again.command)) {
    const auto kept = parts_.held().keep(again);
    return kept || end(kept.error());
  }
  return carry_out(again.command, again.position, &again);
}

std::optional<std::string> Session::why_bound() const {
  if (book_ == nullptr) return "it has no book";
  return book_->why_not();
}

void Session::freeze() {
  channel_.freeze();
  if (book_ != nullptr) book_->freeze();
}

void Session::leave(bool to_host) {
  if (departure_.want(to_host)) channel_.poke();
}

void Session::stay() {
  if (departure_.stay()) channel_.poke();
}

/// True: the session has left, and another engine may go on with it at once. A host function of the
/// client's ends by a command, so that commands are taken until none is under way.
bool Session::try_to_leave() {
  if (!parts_.host_functions().none()) return false;
  if (const auto why = faults_.failed() ? std::optional<std::string>("it has failed") : why_bound())
    return stay_here(*why);
  while (!finish_work()) {
    if (stopping_.load() || faults_.failed() || device_.lost() || channel_.peer_is_gone())
      return false;
  }
  if (departure_.is_to_host()) {
    if (const auto saved = parts_.save_memory(); !saved) return stay_here(saved.error().message);
  }
  freeze();
  const bool left = departure_.leave();
  if (left && hooks_.left && !departure_.is_to_host()) hooks_.left(status());
  return left;
}

/// Tells why the session does not leave. Returns false.
bool Session::stay_here(const std::string& why) {
  (void)departure_.give_up();
  if (hooks_.stays) hooks_.stays(spec_.id, why);
  return false;
}

/// Whether no work of the session is left on the device. Waits a moment for that.
bool Session::finish_work() {
  constexpr std::chrono::milliseconds kMoment{5};
  if (!release_held()) return false;
  (void)parts_.go_on();
  executor_.flush(parts_.client());
  parts_.streams().watch_ends();
  completer_.leave(group_);
  return group_.wait_empty(kMoment) && !parts_.can_go_on() && parts_.host_functions().none();
}

/// A module comes that cannot be fenced. With other users' sessions beside it the supervisor
/// decides first: a session that has loaded it may be bound to this engine.
bool Session::leaves_first() {
  const SessionFence& fence = parts_.fence();
  const bool has_others = fence.is_on();
  if (!hooks_.unfenced || !fence.moves_unfenced() || (told_unfenced_ && !has_others)) return false;
  const bool waits = has_others && !told_unfenced_ && !why_bound() &&
                     parts_.host_functions().none() && departure_.ask();
  told_unfenced_ = true;
  hooks_.unfenced(spec_.id, waits);
  return waits;
}

/// Carries out the command that waited for the supervisor's word; false when the session ends.
bool Session::serve_put_back() {
  const HeldCommands::Kept command = std::move(*put_back_);
  put_back_.reset();
  if (faults_.failed()) {
    answer_failed(command.command);
  } else if (!carry_out(command.command, command.position)) {
    return false;
  }
  if (book_ != nullptr) book_->taken(command.position);
  return true;
}

void Session::serve() {
  while (true) {
    if (departure_.is_wanted() && try_to_leave()) return;
    if (put_back_ && departure_.state() == Departure::State::kHere && !serve_put_back()) return;
    executor_.flush(parts_.client(), StreamWatches::Watched::kDue);
    const bool crowded = is_crowded() || put_back_;
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
      if (!release_held()) return;
      (void)parts_.go_on();
      continue;
    }
    if (event != ipc::EngineChannel::Wait::kCommand) return;
    // On a lost device it is left untouched, for the engine that comes next.
    if (!begun_.load() && device_.lost()) return;
    begun_.store(true);
    if (!serve_commands()) return;
  }
}

/// Carries out what is in the ring; false when the session ends.
bool Session::serve_commands() {
  Command command;
  for (std::uint32_t taken = 1; !stopping_.load() && !is_crowded(); ++taken) {
    // What a dead client left in the ring is not begun any more.
    if (ending_.load() || (taken % kCommandsPerLook == 0 && lost_client())) return false;
    const auto popped = channel_.try_pop(command);
    if (!popped) return end(popped.error());
    if (!*popped) return true;
    if (!serve_command(command)) return false;
    look(false);
    if (parts_.can_go_on()) (void)parts_.go_on();
    if (parts_.host_functions().take_opened() && !release_held()) return false;
    if (departure_.state() != Departure::State::kHere) [[unlikely]]
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

/// False when the command broke the protocol: the session ends.
bool Session::serve_command(Command& command) {
  if (faults_.failed()) {
    answer_failed(command);
    return true;
  }
  const std::uint64_t position = channel_.position();
  if (parts_.held().must_wait(command)) {
    write_waiting(command, position);
    if (!keep(command)) return false;
  } else if (!carry_out(command, position)) {
    return false;
  }
  if (book_ != nullptr && !put_back_) book_->taken(position);
  return true;
}

/// In the journal, as the next engine would not find it in the ring.
void Session::write_waiting(const Command& command, std::uint64_t position) {
  if (book_ != nullptr) book_->write(position, parts_.book_row_of(command), command, false);
}

/// Keeps a command that has to wait; false when there are too many. A query is answered at once,
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
    if (wait && !parts_.held().keeps_record(wait->event)) {
      if (const auto record = parts_.events().find(wait->event))
        waiting.recording = (*record)->event;
    }
  }
  const auto kept = parts_.held().keep(std::move(waiting));
  return kept || end(kept.error());
}

/// Carries out what was kept and need not wait any more; false when the session ends.
bool Session::release_held() {
  (void)parts_.host_functions().take_opened();
  parts_.launches().release_ended();
  if (faults_.failed()) {
    parts_.held().give_up([this](const Command& command) { answer_failed(command); });
    return true;
  }
  return parts_.held().drain([this](const HeldCommands::Kept& kept) {
    return carry_out(kept.command, kept.position, &kept);
  });
}

bool Session::carry_out(const Command& command, std::uint64_t position,
                        const HeldCommands::Kept* kept) {
  const ipc::CommandHeader& header = command.header;
  const bool has_reply = header.reply_slot != ipc::kNoReply;
  // It may take long, and the policy must not wait for the end of launches that nobody watches.
  if (has_reply) executor_.flush(parts_.client());
  if (!copies(header.type)) parts_.streams().watches().watch_put_off();
  parts_.streams().begin_command(position);
  if (book_ != nullptr) {
    book_->begin(position);
    // Its answer may come from another thread at once.
    if (header.type == CommandType::kSynchronize && kept == nullptr)
      book_->write(position, Book::kNoStream, command, true);
  }
  Present present;
  Result<void> done;
  if (has_reply && header.reply_slot >= ipc::kReplySlots) {
    done = slate::fail(ErrorCode::kProtocol, fmt::format("reply slot {}", header.reply_slot));
  } else {
    busy_.store(true, std::memory_order_release);
    done = parts_.carry_out(command, kept, present);
    busy_.store(false, std::memory_order_release);
  }
  if (departure_.is_undecided()) {
    put_back_.emplace(command, position);
    return true;
  }
  // The engine before may have ended it.
  if (!done && position <= again_until_ && ends_an_object(header.type)) done = {};
  if (!done && done.error().code == ErrorCode::kProtocol) return end(done.error());
  if (!done && done.error().code == ErrorCode::kOutOfMemory && has_reply &&
      parts_.held().keeps_frees()) {
    if (kept == nullptr) write_waiting(command, position);
    const auto waits = parts_.held().keep_for_room({command, position});
    return waits || end(waits.error());
  }
  answer(command, done, present.reply);
  if (book_ != nullptr && !present.reply.deferred) {
    if (!done) {
      book_->refused(position);
    } else if (present.stream == nullptr) {
      book_->close(position);
    }
  }
  // The client may wait for the progress of every command on a stream, also one that was refused.
  if (!present.reply.unfinished && present.stream != nullptr &&
      !parts_.streams().command_submitted())
    parts_.streams().end_command(*present.stream);
  return true;
}

/// Tells the client how a command went that was carried out.
void Session::answer(const Command& command, const Result<void>& done, const Reply& reply) {
  const ipc::CommandHeader& header = command.header;
  const bool has_reply = header.reply_slot != ipc::kNoReply;
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
}

void Session::answer_failed(const Command& command) {
  const Error error = faults_.error();
  if (command.header.reply_slot != ipc::kNoReply) {
    channel_.reply_error(command.header.reply_slot, command.header.reply_sequence, error);
  }
  parts_.give_slot_back(command, error.code);
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

/// Whether the client is gone, for a thread that is too busy to be told. Asks the system now and
/// then only.
bool Session::lost_client() {
  const std::int64_t now = now_ns();
  if (now - looked_ns_ < kLookForClientNs) return ending_.load();
  looked_ns_ = now;
  if (channel_.peer_is_gone()) {
    ending_.store(true);
    faults_.ignore();
  }
  return ending_.load();
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
  ending_.store(true);
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
