// Copies and fills of three dimensions.
#include "client/cudart/box.h"
#include "client/session/address_copy.h"
#include "client/session/array_copy.h"

namespace slate::cudart {
namespace {

enum class Returns { kWhenDone, kAtOnce };

cudaError_t run_copy(const cudaMemcpy3DParms* parms, cudaStream_t stream, DefaultStream zero,
                     Returns returns) {
  return with_session([&](Session& session) -> Answer {
    if (parms == nullptr) return deny(cudaErrorInvalidValue);
    const client::BoxCopy box = box_copy_of(*parms);
    const bool at_once = returns == Returns::kAtOnce;
    if (!box.has_array()) {
      if (box.extent.empty()) return {};
      if (auto ok = client::check_box(box.to, box.extent); !ok) return ok;
      if (auto ok = client::check_box(box.from, box.extent); !ok) return ok;
    }
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return box.has_array() ? client::copy_array(session, box, at_once, *id)
                           : client::copy_slices(session, box, at_once, *id);
  });
}

cudaError_t run_fill(const cudaPitchedPtr& pointer, int value, const cudaExtent& extent,
                     cudaStream_t stream, DefaultStream zero, Returns returns) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::fill_slices(session, side_of(nullptr, pointer, {}), value, extent_of(extent),
                               returns == Returns::kAtOnce, *id);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parms) {
  return run_copy(parms, nullptr, kLegacy, Returns::kWhenDone);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* parms) {
  return run_copy(parms, nullptr, kPerThread, Returns::kWhenDone);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parms, cudaStream_t stream) {
  return run_copy(parms, stream, kLegacy, Returns::kAtOnce);
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* parms, cudaStream_t stream) {
  return run_copy(parms, stream, kPerThread, Returns::kAtOnce);
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return run_fill(pointer, value, extent, nullptr, kLegacy, Returns::kWhenDone);
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return run_fill(pointer, value, extent, nullptr, kPerThread, Returns::kWhenDone);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return run_fill(pointer, value, extent, stream, kLegacy, Returns::kAtOnce);
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr pointer, int value, cudaExtent extent,
                                   cudaStream_t stream) {
  return run_fill(pointer, value, extent, stream, kPerThread, Returns::kAtOnce);
}

}  // extern "C"
