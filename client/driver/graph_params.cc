#include "client/driver/graph_params.h"

#include "client/driver/box.h"
#include "client/driver/packed.h"

namespace slate::driver {
namespace {

/// Refuses a context that a node cannot run in. All are of the one session; null is the thread's.
Answer check_context(CUcontext handle) {
  if (handle == nullptr) return {};
  const Context* const context = Contexts::get().find(handle);
  if (context == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
  if (!context->is_active.load(std::memory_order_acquire)) {
    return deny(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  return {};
}

// Parts of the struct that has all kinds.
Maybe<Work> work_of(Session& session, const CUDA_KERNEL_NODE_PARAMS_v3& its) {
  return driver::work_of(
      session,
      CUDA_KERNEL_NODE_PARAMS_v2{its.func, its.gridDimX, its.gridDimY, its.gridDimZ, its.blockDimX,
                                 its.blockDimY, its.blockDimZ, its.sharedMemBytes, its.kernelParams,
                                 its.extra, its.kern, its.ctx});
}
Maybe<Work> work_of(Session&, const CUDA_CHILD_GRAPH_NODE_PARAMS& params) {
  if (params.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    return std::unexpected<Failure>(
        Error{ErrorCode::kNotSupported, "graphs that move into a node are not supported yet"});
  }
  return client::child_work(params.graph);
}

}  // namespace

Maybe<Work> work_of(Session& session, const CUDA_KERNEL_NODE_PARAMS_v1& its) {
  return work_of(session, CUDA_KERNEL_NODE_PARAMS_v2{
                              its.func, its.gridDimX, its.gridDimY, its.gridDimZ, its.blockDimX,
                              its.blockDimY, its.blockDimZ, its.sharedMemBytes, its.kernelParams,
                              its.extra, nullptr, nullptr});
}

Maybe<Work> work_of(Session& session, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  if (params.func == nullptr && params.kern == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  if (auto ok = check_context(params.func != nullptr ? nullptr : params.ctx); !ok) {
    return std::unexpected(ok.error());
  }
  const void* const named = params.func != nullptr ? static_cast<const void*>(params.func)
                                                   : static_cast<const void*>(params.kern);
  if (const auto known = client::kernel_of(named); !known) return deny(CUDA_ERROR_INVALID_HANDLE);
  const client::LaunchConfig config{{params.gridDimX, params.gridDimY, params.gridDimZ},
                                    {params.blockDimX, params.blockDimY, params.blockDimZ},
                                    params.sharedMemBytes};
  if (params.extra == nullptr) {
    return client::kernel_work(session, named, config, params.kernelParams);
  }
  if (params.kernelParams != nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  const auto packed = packed_arguments(params.extra);
  if (!packed) return std::unexpected(packed.error());
  return client::packed_kernel_work(session, named, config, *packed);
}

Maybe<Work> work_of(Session& session, const CUDA_MEMCPY_NODE_PARAMS& params) {
  if (auto ok = check_context(params.copyCtx); !ok) return std::unexpected(ok.error());
  const auto copy = box_copy_of(params.copyParams);
  if (!copy) return std::unexpected(copy.error());
  return client::copy_work(session, *copy);
}

Maybe<Work> work_of(Session& session, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
  if (auto ok = check_context(params.ctx); !ok) return std::unexpected(ok.error());
  return client::fill_work(session, {pointer_to(params.dst), params.pitch, params.value,
                                     params.elementSize, params.width, params.height});
}

Maybe<Work> work_of(Session&, const CUDA_HOST_NODE_PARAMS_v1& params) {
  return client::host_work(params.fn, params.userData);
}

Maybe<Work> work_of(Session& session, const CUgraphNodeParams& params) {
  return client::any_work(session, params, [&](const auto& its) { return work_of(session, its); });
}

CUDA_KERNEL_NODE_PARAMS_v2 params_of(const client::KernelNode& node) {
  // A CUfunction and a CUkernel are the same here: whichever the program looks at is right.
  CUDA_KERNEL_NODE_PARAMS_v2 told{};
  told.func = static_cast<CUfunction>(const_cast<void*>(node.named));
  told.kern = static_cast<CUkernel>(const_cast<void*>(node.named));
  told.gridDimX = node.config.grid[0];
  told.gridDimY = node.config.grid[1];
  told.gridDimZ = node.config.grid[2];
  told.blockDimX = node.config.block[0];
  told.blockDimY = node.config.block[1];
  told.blockDimZ = node.config.block[2];
  told.sharedMemBytes = static_cast<unsigned>(node.config.dynamic_shared_bytes);
  told.kernelParams = const_cast<void**>(node.arguments->pointers.data());
  return told;
}

}  // namespace slate::driver
