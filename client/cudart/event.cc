// Events, and how programs share them.
#include "client/cudart/front.h"
#include "client/session/program_events.h"
#include "client/session/share_handles.h"

namespace slate::cudart {
namespace {

static_assert(client::kEventBlockingSync == cudaEventBlockingSync &&
              client::kEventDisableTiming == cudaEventDisableTiming &&
              client::kEventInterprocess == cudaEventInterprocess);

cudaError_t create(cudaEvent_t* event, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(cudaErrorInvalidValue);
    return give_address(event, client::create_program_event(session, flags));
  });
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if ((flags & ~unsigned{cudaEventRecordExternal}) != 0) return deny(cudaErrorInvalidValue);
    const auto on = stream_id(session, stream, zero);
    if (!on) return std::unexpected(on.error());
    return client::record_event(session, address_of(event), *on, flags != 0);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

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
    const auto made = client::export_program_event(session, address_of(event));
    if (!made) return std::unexpected<Failure>(made.error());
    return give(handle, client::handle_with<cudaIpcEventHandle_t>(*made));
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(cudaErrorInvalidValue);
    const auto id = session.events().import_event(client::share_of(handle));
    if (!id && id.error().code == ErrorCode::kInvalidHandle) {
      return deny(cudaErrorMapBufferObjectFailed);
    }
    return give_address(event, id);
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    return client::destroy_program_event(session, address_of(event));
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
  return with_session(
      [&](Session& session) -> Answer { return client::query_event(session, address_of(event)); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return with_session([&](Session& session) -> Answer {
    return client::synchronize_event(session, address_of(event));
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return with_session([&](Session& session) -> Answer {
    if (milliseconds == nullptr) return deny(cudaErrorInvalidValue);
    return give(milliseconds,
                client::elapsed_between(session, address_of(start), address_of(stop)));
  });
}

}  // extern "C"
