// Events.
#include <cstring>

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
    auto id = session.events().create((timed ? 0 : ipc::kEventNoTiming) |
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
      const auto taken = session.captures().add(*on, client::RecordNode{*id});
      return taken ? Answer(*taken) : deny(cudaErrorIllegalState);
    }
    if (auto taken = session.captures().record(*on, *id)) return *taken;
    return session.events().record(*id, *on);
  });
}

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
    const auto entry = session.events().table().find(*id);
    if (!entry || (entry->flags & slate::client::kEventShared) == 0)
      return deny(cudaErrorInvalidResourceHandle);
    const auto made = session.events().export_event(*id);
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
    const auto id = session.events().import_event(wanted);
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
    session.captures().event_ends(address_of(event));
    return session.events().destroy(address_of(event));
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
    if (auto ok = session.captures().check_event(*id, Captures::Asks::kHowFar); !ok) return ok;
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    auto finished = session.waiting().finished(TargetKind::kEvent, *id);
    if (!finished) return std::unexpected<Failure>(finished.error());
    if (!*finished) return deny(cudaErrorNotReady);
    return session.earlier_error();
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    if (auto ok = session.captures().check_event(*id, Captures::Asks::kHowFar); !ok) return ok;
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    auto outcome = session.waiting().synchronize(TargetKind::kEvent, *id);
    session.printing().write();
    return outcome;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return with_session([&](Session& session) -> Answer {
    if (milliseconds == nullptr) return deny(cudaErrorInvalidValue);
    const auto elapsed =
        slate::client::elapsed_between(session, address_of(start), address_of(stop));
    if (!elapsed) return std::unexpected<Failure>(elapsed.error());
    if (!*elapsed) return deny(cudaErrorNotReady);
    *milliseconds = **elapsed;
    return {};
  });
}

}  // extern "C"
