// Functions of the program that a stream calls. They run on a thread of libslate's own, one at a
// time, in stream order.
#include "client/cudart/front.h"
#include "client/session/error_table.h"

namespace slate::cudart {
namespace {

cudaError_t launch_host(cudaStream_t stream, cudaHostFn_t function, void* data,
                        DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::call_on_stream(session, *id, function, data);
  });
}

cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                         unsigned flags, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    if (callback == nullptr || flags != 0) return deny(cudaErrorInvalidValue);
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    if (auto refused = refuse_capture(session, *id)) return *refused;
    return session.host_functions().call(*id, [=](const Result<void>& outcome) {
      const int error = outcome ? 0 : client::cuda_error_number(outcome.error().code);
      callback(stream, static_cast<cudaError_t>(error), data);
    });
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return launch_host(stream, function, data, kLegacy);
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return launch_host(stream, function, data, kPerThread);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  return add_callback(stream, callback, data, flags, kLegacy);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                       void* data, unsigned flags) {
  return add_callback(stream, callback, data, flags, kPerThread);
}

}  // extern "C"
