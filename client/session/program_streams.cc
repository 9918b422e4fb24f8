#include "client/session/program_streams.h"

#include <pthread.h>

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

/// The id of an event that can be one end of a measurement.
Allowed<std::uint64_t> measured(Session& session, std::uint64_t handle) {
  auto id = event_of(session, handle);
  if (!id) return id;
  if (auto ok = session.captures().check_event(*id, Captures::Asks::kWhen); !ok) {
    return std::unexpected(ok.error());
  }
  const auto entry = session.events().table().find(*id);
  if (!entry || (entry->flags & ipc::kEventNoTiming) != 0 || (entry->flags & kEventRecorded) == 0) {
    return refuse(Refusal::kInvalidHandle);
  }
  return id;
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

Result<void> destroy_program_stream(Session& session, std::uint64_t stream) {
  if (auto ok = session.streams().destroy(stream); !ok) return ok;
  session.captures().stream_ends(stream);
  session.streams().attributes().forget(stream);
  return {};
}

Allowed<std::optional<float>> elapsed_between(Session& session, std::uint64_t start,
                                              std::uint64_t stop) {
  const auto first = measured(session, start);
  if (!first) return std::unexpected(first.error());
  const auto last = measured(session, stop);
  if (!last) return std::unexpected(last.error());
  for (const std::uint64_t id : {*first, *last}) {
    auto finished = session.waiting().finished(ipc::TargetKind::kEvent, id);
    if (!finished) return std::unexpected<Refused>(std::move(finished.error()));
    if (!*finished) return std::nullopt;
  }
  auto elapsed = session.events().elapsed_ms(*first, *last);
  if (!elapsed) return std::unexpected<Refused>(std::move(elapsed.error()));
  return *elapsed;
}

}  // namespace slate::client
