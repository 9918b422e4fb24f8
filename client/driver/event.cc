// Events.
#include "client/driver/front.h"
#include "client/session/program_events.h"

namespace slate::driver {
namespace {

static_assert(client::kEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
              client::kEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
              client::kEventInterprocess == CU_EVENT_INTERPROCESS);

CUresult destroy(CUevent event) noexcept {
  return with_session([&](Session& session) -> Answer {
    return client::destroy_program_event(session, address_of(event));
  });
}

CUresult record(CUevent event, CUstream stream, unsigned flags) noexcept {
  return with_session([&](Session& session) -> Answer {
    if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto on = stream_id(session, stream);
    if (!on) return std::unexpected(on.error());
    return client::record_event(session, address_of(event), *on, flags != 0);
  });
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent stop) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (milliseconds == nullptr) return deny(CUDA_ERROR_INVALID_HANDLE);
    return give(milliseconds,
                client::elapsed_between(session, address_of(start), address_of(stop)));
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (event == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return give_address(event, client::create_program_event(session, flags));
  });
}
CUresult cuEventDestroy(CUevent event) {
  return destroy(event);
}
CUresult cuEventDestroy_v2(CUevent event) {
  return destroy(event);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record(event, stream, CU_EVENT_RECORD_DEFAULT);
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return record(event, stream, flags);
}

CUresult cuEventQuery(CUevent event) {
  return with_session(
      [&](Session& session) -> Answer { return client::query_event(session, address_of(event)); });
}
CUresult cuEventSynchronize(CUevent event) {
  return with_session([&](Session& session) -> Answer {
    return client::synchronize_event(session, address_of(event));
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
  return elapsed(milliseconds, start, stop);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent stop) {
  return elapsed(milliseconds, start, stop);
}

}  // extern "C"
