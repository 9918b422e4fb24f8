#include "client/session/program_streams.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "client/session/captures.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

/// The implicit stream of this thread, in the session with this serial.
struct ThreadStream {
  std::uint64_t session = 0;
  std::uint64_t id = 0;
};
thread_local ThreadStream thread_stream;

/// Called when a thread ends that has used its stream.
void end_thread_stream(void* stream) noexcept {
  const ThreadStream& ended = *static_cast<ThreadStream*>(stream);
  Session* session = Process::get().current(ended.session);
  if (session == nullptr) return;
  try {
    (void)destroy_program_stream(*session, ended.id);
  } catch (...) {  // want of memory: the session's end destroys it
  }
}

/// Has end_thread_stream() called. Not a destructor of thread_stream: those run at exit too, before
/// the exit handlers of programs that still call CUDA.
void watch_thread_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, end_thread_stream);
    return made;
  }();
  ::pthread_setspecific(key, &thread_stream);
}

Allowed<std::uint64_t> per_thread_stream(Session& session) {
  if (thread_stream.session != session.serial() ||
      !session.streams().table().contains(thread_stream.id)) {
    auto made = session.streams().create(0, 0);
    if (!made) return std::unexpected<Refused>(std::move(made.error()));
    thread_stream = {session.serial(), *made};
    watch_thread_end();
  }
  return thread_stream.id;
}

// Attributes that are kept: CU_LAUNCH_ATTRIBUTE_*.
constexpr int kAccessPolicyWindow = 1;
constexpr int kSynchronizationPolicy = 3;
constexpr int kPriority = 8;
constexpr int kMemSyncDomainMap = 9;
constexpr int kMemSyncDomain = 10;

bool is_kept(int attribute) {
  return attribute == kAccessPolicyWindow || attribute == kSynchronizationPolicy ||
         attribute == kMemSyncDomainMap || attribute == kMemSyncDomain;
}

/// What a stream has before anything is set.
StreamAttributes::Value initial(int attribute) {
  StreamAttributes::Value value{};
  if (attribute == kSynchronizationPolicy) {
    constexpr int kUnset = -1;  // what an H200 said, though it is none of the enumerators
    std::memcpy(value.data(), &kUnset, sizeof(kUnset));
  } else if (attribute == kMemSyncDomainMap) {
    constexpr std::array<unsigned char, 2> kDomains{0, 1};  // the default one, the remote one
    std::memcpy(value.data(), kDomains.data(), sizeof(kDomains));
  }
  return value;
}

}  // namespace

Allowed<std::uint64_t> stream_of(Session& session, std::uint64_t handle, DefaultStream zero) {
  if (handle == 0) {
    if (zero == DefaultStream::kLegacy) return ipc::kDefaultStream;
    return per_thread_stream(session);
  }
  if (handle == kLegacyHandle) return ipc::kDefaultStream;
  if (handle == kPerThreadHandle) return per_thread_stream(session);
  if (!session.streams().table().contains(handle)) return refuse(Refusal::kInvalidHandle);
  return handle;
}

Allowed<std::uint64_t> event_of(Session& session, std::uint64_t handle) {
  if (session.events().table().contains(handle)) return handle;
  // An event of a session that has ended is a different error in CUDA.
  return refuse(session.events().made_earlier(handle) ? Refusal::kHandleOfEnded
                                                      : Refusal::kInvalidHandle);
}

Allowed<std::uint64_t> create_program_stream(Session& session, bool non_blocking, int priority) {
  const auto id = session.streams().create(non_blocking ? ipc::kStreamNonBlocking : 0,
                                           std::clamp(priority, kGreatestPriority, kLeastPriority));
  if (!id) return std::unexpected<Refused>(id.error());
  if (!non_blocking) return *id;
  if (auto ok = session.copies().settle_taken(); !ok) {
    (void)session.streams().destroy(*id);
    return std::unexpected<Refused>(ok.error());
  }
  return *id;
}

Result<void> destroy_program_stream(Session& session, std::uint64_t stream) {
  if (auto ok = session.streams().destroy(stream); !ok) return ok;
  session.captures().stream_ends(stream);
  session.streams().attributes().forget(stream);
  return {};
}

Allowed<void> query_stream(Session& session, std::uint64_t stream) {
  Captures& captures = session.captures();
  if (captures.takes(stream)) return captures.refuse_work(stream);
  const auto finished = session.waiting().finished(ipc::TargetKind::kStream, stream);
  if (!finished) return std::unexpected<Refused>(finished.error());
  if (!*finished) return refuse(Refusal::kNotReady);
  return session.earlier_error();
}

Allowed<void> synchronize_stream(Session& session, std::uint64_t stream) {
  Captures& captures = session.captures();
  if (captures.takes(stream)) return captures.refuse_work(stream);
  auto outcome = session.waiting().synchronize(ipc::TargetKind::kStream, stream);
  session.printing().write();
  return outcome;
}

Allowed<void> call_on_stream(Session& session, std::uint64_t stream, void (*function)(void*),
                             void* data) {
  if (function == nullptr) return refuse(Refusal::kInvalidValue);
  if (auto taken = session.captures().add(stream, HostNode{function, data})) return *taken;
  return session.host_functions().call(stream, [=](const Result<void>& outcome) {
    if (outcome) function(data);
  });
}

Allowed<StreamAttributes::Value> attribute_of_stream(Session& session, std::uint64_t stream,
                                                     int attribute) {
  if (attribute == kPriority) {
    StreamAttributes::Value value{};
    const auto entry = session.streams().table().find(stream);
    if (entry) std::memcpy(value.data(), &entry->priority, sizeof(entry->priority));
    return value;
  }
  if (!is_kept(attribute)) return refuse(Refusal::kInvalidValue);
  return session.streams().attributes().find(stream, attribute).value_or(initial(attribute));
}

Allowed<void> set_attribute_of_stream(Session& session, std::uint64_t stream, int attribute,
                                      const StreamAttributes::Value& value) {
  if (attribute == kPriority) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kNotSupported, "a stream's priority cannot be changed yet"});
  }
  if (!is_kept(attribute)) return refuse(Refusal::kInvalidValue);
  session.streams().attributes().set(stream, attribute, value);
  return {};
}

}  // namespace slate::client
