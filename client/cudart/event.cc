// Events.
#include <cstring>

#include "client/cudart/capture.h"
#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

using ipc::TargetKind;

cudaError_t create(cudaEvent_t* event, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    constexpr unsigned kKnown =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    const bool shared = (flags & cudaEventInterprocess) != 0;
    if (event == nullptr || (flags & ~kKnown) != 0 || (shared && timed)) {
      return deny(cudaErrorInvalidValue);
    }
    auto id = session.create_event((timed ? 0 : ipc::kEventNoTiming) |
                                   (shared ? client::kEventShared : 0));
    if (!id) return std::unexpected<Failure>(id.error());
    *event = static_cast<cudaEvent_t>(pointer_to(*id));
    return {};
  });
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if ((flags & ~unsigned{cudaEventRecordExternal}) != 0) return deny(cudaErrorInvalidValue);
    auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    auto on = stream_id(session, stream, zero);
    if (!on) return std::unexpected(on.error());
    // For whoever waits outside the graph: only streams that capture can be told so.
    if (flags != 0) {
      const auto taken = capture(session, *on, RecordNode{event});
      return taken ? *taken : deny(cudaErrorIllegalState);
    }
    if (auto taken = capture_record(session, *on, event)) return *taken;
    return session.record(*id, *on);
  });
}

/// The id of an event that can be one end of a measurement. Waits for nothing: cudaErrorNotReady if
/// it has to.
Maybe<std::uint64_t> measured(Session& session, cudaEvent_t event) {
  auto id = event_id(session, event);
  if (!id) return id;
  if (auto ok = check_event(session, event, Asks::kWhen); !ok) return std::unexpected(ok.error());
  const auto entry = session.events().find(*id);
  if (!entry || (entry->flags & ipc::kEventNoTiming) != 0 ||
      (entry->flags & client::kEventRecorded) == 0) {
    return deny(cudaErrorInvalidResourceHandle);
  }
  return id;
}

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return create(event, cudaEventDefault);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create(event, flags);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    if (handle == nullptr) return deny(cudaErrorInvalidValue);
    auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    const auto entry = session.events().find(*id);
    if (!entry || (entry->flags & slate::client::kEventShared) == 0)
      return deny(cudaErrorInvalidResourceHandle);
    const auto made = session.export_event(*id);
    if (!made) return std::unexpected<Failure>(made.error());
    static_assert(sizeof(handle->reserved) == sizeof(made->bytes));
    std::memcpy(handle->reserved, made->bytes, sizeof(made->bytes));
    return {};
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(cudaErrorInvalidValue);
    slate::ipc::ShareHandle wanted{};
    std::memcpy(wanted.bytes, handle.reserved, sizeof(wanted.bytes));
    const auto id = session.import_event(wanted);
    if (!id && id.error().code == slate::ErrorCode::kInvalidHandle) {
      return deny(cudaErrorMapBufferObjectFailed);
    }
    if (!id) return std::unexpected<Failure>(id.error());
    *event = static_cast<cudaEvent_t>(pointer_to(*id));
    return {};
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    forget_event(session, event);
    return session.destroy_event(address_of(event));
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream, cudaEventRecordDefault, kLegacy);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return record(event, stream, cudaEventRecordDefault, kPerThread);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record(event, stream, flags, kLegacy);
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record(event, stream, flags, kPerThread);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    if (auto ok = check_event(session, event, Asks::kHowFar); !ok) return ok;
    if (auto ok = check_capture_allows(session); !ok) return ok;
    auto finished = session.finished(TargetKind::kEvent, *id);
    if (!finished) return std::unexpected<Failure>(finished.error());
    if (!*finished) return deny(cudaErrorNotReady);
    return session.earlier_error();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    if (auto ok = check_event(session, event, Asks::kHowFar); !ok) return ok;
    if (auto ok = check_capture_allows(session); !ok) return ok;
    auto outcome = session.synchronize(TargetKind::kEvent, *id);
    write_printed(session);
    return outcome;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return with_session([&](Session& session) -> Answer {
    if (milliseconds == nullptr) return deny(cudaErrorInvalidValue);
    auto first = measured(session, start);
    if (!first) return std::unexpected(first.error());
    auto last = measured(session, stop);
    if (!last) return std::unexpected(last.error());
    for (const std::uint64_t id : {*first, *last}) {
      auto finished = session.finished(TargetKind::kEvent, id);
      if (!finished) return std::unexpected<Failure>(finished.error());
      if (!*finished) return deny(cudaErrorNotReady);
    }
    auto elapsed = session.elapsed_ms(*first, *last);
    if (!elapsed) return std::unexpected<Failure>(elapsed.error());
    *milliseconds = *elapsed;
    return {};
  });
}

}  // extern "C"
