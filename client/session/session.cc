#include "client/session/session.h"

#include "client/session/say.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

namespace {

/// Leaves a session more handles than a program lives to make.
constexpr int kSerialShift = 32;

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& runtime_dir,
                                               std::chrono::milliseconds timeout,
                                               std::uint64_t serial) {
  auto channel = ipc::ClientChannel::connect(runtime_dir, timeout);
  if (!channel) return std::unexpected(channel.error());
  return std::make_unique<Session>(std::move(*channel), serial);
}

Session::Session(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial)
    : channel_(std::move(channel)), serial_(serial), handle_counter_(serial << kSerialShift) {}

std::uint32_t Session::capability() const {
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  const auto& attributes = device().attributes;
  return static_cast<std::uint32_t>(attributes[kMajor] * 10 + attributes[kMinor]);
}

Result<void> Session::check() {
  if (auto ok = channel_->check(); !ok) return ok;
  return earlier_error();
}

Result<void> Session::earlier_error() {
  if (const ErrorCode code = channel_->take_async_error(); code != ErrorCode::kNone) [[unlikely]] {
    return fail(code, "an earlier asynchronous call failed: " + std::string(error_name(code)));
  }
  return {};
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
  const std::uint64_t id = streams_.add({flags, priority});
  if (id == 0) return fail(ErrorCode::kLimit, "too many streams");
  auto ok = post(CommandType::kStreamCreate, ipc::StreamCreate{id, flags, priority});
  if (ok) return id;
  streams_.remove(id);
  return std::unexpected(ok.error());
}

Result<void> Session::destroy_stream(std::uint64_t stream) {
  if (!streams_.remove(stream)) return fail(ErrorCode::kInvalidHandle, "no such stream");
  return post(CommandType::kStreamDestroy, ipc::IdCommand{stream});
}

bool Session::made_earlier(std::uint64_t id) const {
  const std::uint64_t serial = id >> HandleTable::kSlotBits >> kSerialShift;
  return serial != 0 && serial < serial_;
}

Result<std::uint64_t> Session::create_event(std::uint32_t flags) {
  const std::uint64_t id = events_.add({flags, 0});
  if (id == 0) return fail(ErrorCode::kLimit, "too many events");
  auto ok = post(CommandType::kEventCreate, ipc::EventCreate{id, flags, 0});
  if (ok) return id;
  events_.remove(id);
  return std::unexpected(ok.error());
}

Result<void> Session::destroy_event(std::uint64_t event) {
  if (!events_.remove(event)) return fail(ErrorCode::kInvalidHandle, "no such event");
  return post(CommandType::kEventDestroy, ipc::IdCommand{event});
}

Result<void> Session::record(std::uint64_t event, std::uint64_t stream) {
  events_.mark(event, kEventRecorded);
  return post(CommandType::kEventRecord, ipc::EventStream{event, stream});
}

Result<void> Session::wait(std::uint64_t stream, std::uint64_t event) {
  return post(CommandType::kStreamWaitEvent, ipc::EventStream{event, stream});
}

Result<float> Session::elapsed_ms(std::uint64_t start, std::uint64_t stop) {
  auto reply = call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{start, stop});
  if (!reply) return std::unexpected(reply.error());
  return reply->milliseconds;
}

Result<bool> Session::finished(ipc::TargetKind kind, std::uint64_t id) {
  auto reply = call<ipc::QueryReply>(CommandType::kQuery, ipc::Target{kind, 0, id});
  if (!reply) return std::unexpected(reply.error());
  return reply->finished != 0;
}

Result<void> Session::synchronize(ipc::TargetKind kind, std::uint64_t id) {
  auto reply = call<Nothing>(CommandType::kSynchronize, ipc::Target{kind, 0, id});
  if (!reply) return std::unexpected(reply.error());
  return check();  // what the commands before it came to is known by now
}

}  // namespace slate::client
