#include "client/session/session.h"

#include "client/session/captures.h"
#include "client/session/say.h"
#include "client/session/session_calls.h"
#include "client/session/wishes.h"

namespace slate::client {

using ipc::CommandType;

namespace {

/// Leaves a session more handles than a program lives to make.
constexpr int kSerialShift = 32;

/// A program that checks no error would go on, and end well, with results that are none.
void say_end(const Error& error) {
  say("the session of this program has ended: " + std::string(error_name(error.code)) + ": " +
      error.message + ". Nothing that it still asks of the GPU is carried out.");
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& runtime_dir,
                                               std::chrono::milliseconds timeout,
                                               std::uint64_t serial) {
  auto channel = ipc::ClientChannel::connect(runtime_dir, timeout, environment_wishes());
  if (!channel) return std::unexpected(channel.error());
  return std::make_unique<Session>(std::move(*channel), serial);
}

Session::Session(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial)
    : channel_(std::move(channel)),
      serial_(serial),
      handle_counter_(serial << kSerialShift),
      progress_(*channel_),
      host_pool_({[this](std::uint64_t bytes) { return allocate_slab(bytes); },
                  [this](std::uint64_t address) { (void)free_host(address); },
                  [this] { return progress_.newest(); },
                  [this](std::uint64_t position) {
                    const auto known = progress_.finished_up_to(position);
                    return known ? *known : finished(ipc::TargetKind::kSession, 0).value_or(false);
                  }}),
      managed_guard_({[this](std::uint64_t mark) { return progress_.reached(mark).value_or(true); },
                      [this] { return !channel_->check(); },
                      [this] { return host_functions_.is_own_thread(); }}),
      captures_(std::make_unique<Captures>(streams_)),
      pools_(serial) {
  channel_->on_end(say_end);
}

Session::~Session() {
  host_functions_.stop();
  managed_guard_.stop();
  host_blocks_.unmap_managed();
  // Pieces in use the program may still read, as it may large blocks.
  host_pool_.for_each_empty(unmap_shared);
  if (printing_.ring) unmap_shared(printing_.block.address, printing_.block.bytes);
}

void Session::abandon() {
  host_functions_.stop();
  managed_guard_.stop();
  channel_->abandon();
}

std::uint32_t Session::capability() const {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  const auto& attributes = device().attributes;
  return static_cast<std::uint32_t>(attributes[kMajor] * 10 + attributes[kMinor]);
}

Result<void> Session::check() {
  managed_guard_.open_if_done();
  if (auto ok = channel_->check(); !ok) return ok;
  return earlier_error();
}

Result<void> Session::earlier_error() {
  if (auto ok = look_for_assertions(); !ok) return ok;
  const Error error = channel_->take_async_error();
  if (error.code == ErrorCode::kNone) [[likely]]
    return {};
  const std::string name(error_name(error.code));
  const std::string text = "an earlier call that had returned was refused: " + name +
                           (error.message.empty() ? "" : ": " + error.message);
  // It went unseen, and a program that checks nothing goes on with wrong data.
  say_once(text);
  return fail(error.code, text);
}

Result<void> Session::report_unsupported(std::string_view function) {
  return channel_->post(CommandType::kUnsupportedCall,
                        std::as_bytes(std::span(function.substr(0, ipc::kMostNameBytes))));
}

// --- Memory
// ----------------------------------------------------------------------------------------------

Result<std::uint64_t> Session::allocate(std::uint64_t bytes) {
  auto reply = call<ipc::AddressReply>(CommandType::kMemoryAllocate, ipc::MemoryAllocate{bytes});
  if (!reply) return std::unexpected(reply.error());
  memory_.insert({reply->address, bytes, kTagMemory});
  return reply->address;
}

Result<void> Session::free(std::uint64_t address) {
  if (const auto range = memory_.find(address); range && range->tag == kTagManaged)
    return free_managed(address);
  // Out of the table first: once the daemon has the command it may give the address to another
  // thread.
  if (!memory_.erase(address, kTagMemory)) {
    return fail(ErrorCode::kInvalidValue, "no allocation begins at the address to be freed");
  }
  return post(CommandType::kMemoryFree, ipc::MemoryFree{address});
}

Result<ipc::MemoryInfoReply> Session::memory_info() {
  return call<ipc::MemoryInfoReply>(CommandType::kMemoryInfo, Nothing{});
}

bool Session::covers(DeviceRows rows, Shape shape) const {
  const auto extent = extent_of(rows.pitch, shape.width, shape.height);
  return extent && (*extent == 0 || memory_.covers(rows.address, *extent));
}

// --- Streams and events
// ------------------------------------------------------------------------------------

Result<std::uint64_t> Session::create_stream(std::uint32_t flags, std::int32_t priority) {
  const bool ordered = (flags & ipc::kStreamNonBlocking) == 0;
  const std::uint32_t progress = progress_.take(ordered);
  const std::uint64_t id = streams_.add({flags, priority, progress, 0});
  if (id == 0) {
    progress_.give_back(progress);
    return fail(ErrorCode::kLimit, "too many streams");
  }
  if (!ordered) unordered_streams_.fetch_add(1);
  auto ok = post(CommandType::kStreamCreate, ipc::StreamCreate{id, flags, priority, progress, 0});
  if (ok) return id;
  if (!ordered) unordered_streams_.fetch_sub(1);
  streams_.remove(id);
  progress_.give_back(progress);
  return std::unexpected(ok.error());
}

Result<void> Session::destroy_stream(std::uint64_t stream) {
  const std::uint32_t progress = progress_of(stream);
  const auto entry = streams_.find(stream);
  if (!streams_.remove(stream)) return fail(ErrorCode::kInvalidHandle, "no such stream");
  if (entry && (entry->flags & ipc::kStreamNonBlocking) != 0) unordered_streams_.fetch_sub(1);
  progress_.give_back(progress);
  return post(CommandType::kStreamDestroy, ipc::IdCommand{stream});
}

bool Session::made_earlier(std::uint64_t id) const {
  const std::uint64_t serial = id >> HandleTable::kSlotBits >> kSerialShift;
  return serial != 0 && serial < serial_;
}

Result<std::uint64_t> Session::create_event(std::uint32_t flags) {
  const std::uint64_t id = events_.add({flags, 0, 0, 0});
  if (id == 0) return fail(ErrorCode::kLimit, "too many events");
  auto ok = post(CommandType::kEventCreate, ipc::EventCreate{id, flags & ipc::kEventNoTiming, 0});
  if (ok) return id;
  events_.remove(id);
  return std::unexpected(ok.error());
}

Result<void> Session::destroy_event(std::uint64_t event) {
  if (!events_.remove(event)) return fail(ErrorCode::kInvalidHandle, "no such event");
  return post(CommandType::kEventDestroy, ipc::IdCommand{event});
}

Result<void> Session::record(std::uint64_t event, std::uint64_t stream) {
  Sent sent;
  auto ok =
      post_work(CommandType::kEventRecord, ipc::EventStream{event, stream}, stream, {}, &sent);
  if (!ok) return ok;
  events_.note(event, ProgressTable::mark_of(progress_of(stream), sent.position));
  events_.mark(event, kEventRecorded);
  const auto entry = events_.find(event);
  if (!entry || (entry->flags & kEventShared) == 0) return ok;
  // What the program tells another one next may make that wait for this record.
  const auto recorded =
      call<ipc::QueryReply>(CommandType::kQuery, ipc::Target{ipc::TargetKind::kEvent, 1, event});
  if (!recorded) return std::unexpected(recorded.error());
  return {};
}

Result<void> Session::wait(std::uint64_t stream, std::uint64_t event) {
  return post_work(CommandType::kStreamWaitEvent, ipc::EventStream{event, stream}, stream);
}

Result<float> Session::elapsed_ms(std::uint64_t start, std::uint64_t stop) {
  auto reply = call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{start, stop});
  if (!reply) return std::unexpected(reply.error());
  return reply->milliseconds;
}

std::uint32_t Session::progress_of(std::uint64_t stream) const {
  if (stream == ipc::kDefaultStream) return ProgressTable::kDefaultStream;
  const auto entry = streams_.find(stream);
  return entry ? entry->progress : ipc::kNoProgress;
}

/// What the status page tells; none: only the daemon knows.
std::optional<bool> Session::known_finished(ipc::TargetKind kind, std::uint64_t id) const {
  switch (kind) {
    case ipc::TargetKind::kSession:
      return progress_.finished_all(false);
    case ipc::TargetKind::kStream:
      if (id == ipc::kDefaultStream) return progress_.finished_all(true);
      return progress_.finished(progress_of(id));
    case ipc::TargetKind::kEvent: {
      const auto entry = events_.find(id);
      // Other programs record those too.
      if (!entry || (entry->flags & kEventShared) != 0) return std::nullopt;
      return entry->mark == 0 ? true : progress_.reached(entry->mark);
    }
  }
  return std::nullopt;
}

/// Of the last record of an event, or of what was sent to one stream; 0: none.
std::uint64_t Session::mark_of(ipc::TargetKind kind, std::uint64_t id) const {
  if (kind == ipc::TargetKind::kEvent) {
    const auto entry = events_.find(id);
    return entry ? entry->mark : 0;
  }
  if (kind != ipc::TargetKind::kStream || id == ipc::kDefaultStream) return 0;
  const std::uint32_t progress = progress_of(id);
  return ProgressTable::mark_of(progress, progress_.sent(progress));
}

Result<bool> Session::finished(ipc::TargetKind kind, std::uint64_t id) {
  const std::uint64_t mark = mark_of(kind, id);
  if (const auto known = known_finished(kind, id)) {
    if (*known) managed_guard_.open_if_done();
    if (*known || mark == 0 || !progress_.may_lag(mark)) return *known;
  }
  const auto over = ask_finished(kind, id);
  if (over && *over && mark != 0) progress_.confirm_mark(mark);
  managed_guard_.open_if_done();
  return over;
}

Result<bool> Session::ask_finished(ipc::TargetKind kind, std::uint64_t id) {
  const auto reply = call<ipc::QueryReply>(CommandType::kQuery, ipc::Target{kind, 0, id});
  if (!reply) return std::unexpected(reply.error());
  return reply->finished != 0;
}

/// The daemon may know it before it tells it in the status page; later queries must not say less.
Result<void> Session::ask_to_synchronize(ipc::TargetKind kind, std::uint64_t id) {
  const bool one_stream = kind == ipc::TargetKind::kStream && id != ipc::kDefaultStream;
  const std::uint32_t entry = one_stream ? progress_of(id) : ipc::kNoProgress;
  const std::uint64_t sent = progress_.sent(entry);
  std::uint64_t mark = 0;
  ProgressTable::Snapshot all;
  if (kind == ipc::TargetKind::kEvent) {
    if (const auto event = events_.find(id)) mark = event->mark;
  } else if (!one_stream) {
    progress_.sent(kind == ipc::TargetKind::kStream, all);
  }
  Result<bool> over = true;
  const auto is_over = [&] {
    over = finished(kind, id);
    return over.value_or(true);
  };
  const auto answered = channel_->call_unless(CommandType::kSynchronize,
                                              ipc::bytes_of(ipc::Target{kind, 0, id}), is_over);
  if (!answered) return std::unexpected(answered.error());
  if (!over) return std::unexpected(over.error());
  if (kind == ipc::TargetKind::kEvent) {
    if (mark != 0) progress_.confirm_mark(mark);
  } else if (one_stream) {
    progress_.confirm(entry, sent);
  } else {
    progress_.confirm(all);
  }
  return {};
}

Result<void> Session::synchronize(ipc::TargetKind kind, std::uint64_t id) {
  const std::uint64_t sent = progress_.newest();
  auto done = wait_until_finished(kind, id);
  if (done) progress_.wait_ended(sent);
  managed_guard_.open_if_done();
  return done;
}

Result<void> Session::wait_for_turn(std::uint64_t stream) {
  const auto entry = streams_.find(stream);
  const bool ordered = entry && (entry->flags & ipc::kStreamNonBlocking) == 0;
  if (!ordered || progress_.finished_all(true).value_or(false))
    return synchronize(ipc::TargetKind::kStream, stream);
  const auto event = create_event(ipc::kEventNoTiming);
  if (!event) return std::unexpected(event.error());
  auto done = record(*event, stream);
  if (done) done = synchronize(ipc::TargetKind::kEvent, *event);
  const auto destroyed = destroy_event(*event);
  return done ? destroyed : done;
}

Result<void> Session::wait_until_finished(ipc::TargetKind kind, std::uint64_t id) {
  if (const auto known = known_finished(kind, id)) {
    // Work that is about to end is waited for without telling the daemon.
    const bool ended =
        *known || channel_->spin_until([&] { return known_finished(kind, id).value_or(false); });
    if (ended) {
      // When nothing was heard from the daemon just now: is it still there?
      if (auto ok = *known ? channel_->check_now() : channel_->check(); !ok) return ok;
      return earlier_error();
    }
  }
  auto done = ask_to_synchronize(kind, id);
  if (!done) return done;
  return check();  // what the commands before it came to is known by now
}

Result<bool> Session::reached(std::uint64_t event) {
  if (auto ok = channel_->check(); !ok) return std::unexpected(ok.error());
  if (const auto known = known_finished(ipc::TargetKind::kEvent, event)) return *known;
  return ask_finished(ipc::TargetKind::kEvent, event);
}

Result<void> Session::host_done(std::uint64_t ticket) {
  return post(CommandType::kHostDone, ipc::IdCommand{ticket});
}

Result<void> Session::call_on_host(std::uint64_t stream, HostFunction function) {
  const std::lock_guard lock(host_order_mutex_);
  host_functions_.wait_for_room();
  auto event = create_event(ipc::kEventNoTiming);
  if (!event) return std::unexpected(event.error());
  const std::uint64_t ticket = ++next_id_;
  auto sent = record(*event, stream);
  if (sent) sent = post_work(CommandType::kHostGate, ipc::HostGate{ticket, stream}, stream);
  if (sent) sent = host_functions_.add({stream, *event, ticket, std::move(function)});
  if (!sent) (void)destroy_event(*event);
  return sent;
}

}  // namespace slate::client
