// Copies and fills of three dimensions: between linear memories as one, or slice by slice; of CUDA
// arrays in array_copy.cc.
#include "client/cudart/array.h"
#include "client/cudart/capture.h"
#include "client/cudart/copy.h"

namespace slate::cudart {
namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

enum class Returns { kWhenDone, kAtOnce };

cudaError_t run_copy(const cudaMemcpy3DParms* parms, cudaStream_t stream, DefaultStream zero,
                     Returns returns) {
  return with_session([&](Session& session) -> Answer {
    if (parms == nullptr) return deny(cudaErrorInvalidValue);
    if (has_array(*parms)) {
      auto id = stream_id(session, stream, zero);
      if (!id) return std::unexpected(id.error());
      return copy_array(session, {*parms}, returns == Returns::kAtOnce, *id);
    }
    const cudaExtent& extent = parms->extent;
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return {};
    if (auto ok = check_box(parms->dstPtr, parms->dstPos, extent); !ok) return ok;
    if (auto ok = check_box(parms->srcPtr, parms->srcPos, extent); !ok) return ok;
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    // Slices without rows between them, on either side, are one copy.
    const bool dense = parms->dstPtr.ysize == extent.height && parms->srcPtr.ysize == extent.height;
    const std::size_t slices = dense ? 1 : extent.depth;
    const std::size_t rows = dense ? extent.height * extent.depth : extent.height;
    const bool captured = returns == Returns::kAtOnce && is_capturing(session, *id);
    const auto call_of = [&](std::size_t z) {
      return CopyCall{slice_of(parms->dstPtr, parms->dstPos, z),
                      parms->dstPtr.pitch,
                      slice_of(parms->srcPtr, parms->srcPos, z),
                      parms->srcPtr.pitch,
                      extent.width,
                      rows,
                      parms->kind,
                      returns == Returns::kAtOnce || z + 1 < slices};
    };
    if (slices > 1) {
      // Before the first slice is copied, as the others may be refused.
      const std::size_t before = slices - 1;
      auto ok = check_slices(session, call_of(0), before * parms->dstPtr.ysize + rows,
                             before * parms->srcPtr.ysize + rows);
      if (!ok) return ok;
    }
    for (std::size_t z = 0; z < slices; ++z) {
      const CopyCall call = call_of(z);
      auto ok = captured ? check_copy(session, call) : copy(session, call, *id);
      if (!ok) return ok;
    }
    // However many slices it has, it is one node.
    if (captured) return capture(session, *id, CopyNode{*parms}).value_or(Answer{});
    return {};
  });
}

cudaError_t run_fill(const cudaPitchedPtr& pointer, int value, const cudaExtent& extent,
                     cudaStream_t stream, DefaultStream zero, Returns returns) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    if (extent.width > pointer.pitch || extent.height > pointer.ysize) {
      return deny(cudaErrorInvalidValue);
    }
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return {};
    // Before the first slice is filled, as the others may be refused.
    if (!check_box(pointer, {}, extent) ||
        !is_fillable(session, pointer.ptr, pointer.pitch,
                     {extent.width, (extent.depth - 1) * pointer.ysize + extent.height})) {
      return deny(cudaErrorInvalidValue);
    }
    for (std::size_t z = 0; z < extent.depth; ++z) {
      const bool at_once = returns == Returns::kAtOnce || z + 1 < extent.depth;
      auto ok = fill(
          session,
          {slice_of(pointer, {}, z), pointer.pitch, value, extent.width, extent.height, at_once},
          *id);
      if (!ok) return ok;
    }
    return {};
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
