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

}  // namespace

CUgraphNodeType type_of(const Work& work) {
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,     CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  return {params.func,         params.gridDimX,  params.gridDimY,  params.gridDimZ,
          params.blockDimX,    params.blockDimY, params.blockDimZ, params.sharedMemBytes,
          params.kernelParams, params.extra,     nullptr,          nullptr};
}

Maybe<Work> kernel_work(Session& session, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
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

Maybe<Work> copy_work(Session& session, const CUDA_MEMCPY3D& params, CUcontext context) {
  if (auto ok = check_context(context); !ok) return std::unexpected(ok.error());
  const auto copy = box_copy_of(params);
  if (!copy) return std::unexpected(copy.error());
  return client::copy_work(session, *copy);
}

Maybe<Work> fill_work(Session& session, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
  if (auto ok = check_context(params.ctx); !ok) return std::unexpected(ok.error());
  return client::fill_work(session, {pointer_to(params.dst), params.pitch, params.value,
                                     params.elementSize, params.width, params.height});
}

Maybe<Work> allocate_work(Session& session, CUDA_MEM_ALLOC_NODE_PARAMS_v2& params) {
  const CUmemPoolProps& from = params.poolProps;
  if (from.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      from.location.type != CU_MEM_LOCATION_TYPE_DEVICE || from.location.id != 0) {
    return deny(CUDA_ERROR_INVALID_VALUE);
  }
  if (from.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return deny(CUDA_ERROR_NOT_SUPPORTED);
  auto work = client::allocate_work(session, params.bytesize);
  if (!work) return std::unexpected<Failure>(work.error());
  params.dptr = std::get<client::AllocateNode>(*work).memory->address();
  return std::move(*work);
}

Maybe<Work> any_work(Session& session, const CUgraphNodeParams& params) {
  switch (static_cast<int>(params.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& its = params.kernel;
      return kernel_work(session, {its.func, its.gridDimX, its.gridDimY, its.gridDimZ,
                                   its.blockDimX, its.blockDimY, its.blockDimZ, its.sharedMemBytes,
                                   its.kernelParams, its.extra, its.kern, its.ctx});
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_work(session, params.memcpy.copyParams, params.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return fill_work(session, params.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      if (params.host.fn == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
      return client::HostNode{params.host.fn, params.host.userData};
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (params.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
        return std::unexpected<Failure>(
            Error{ErrorCode::kNotSupported, "graphs that move into a node are not supported yet"});
      }
      return child_maker(params.graph.graph)(session);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return free_maker(params.free.dptr)(session);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return client::EmptyNode{};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return event_maker<client::RecordNode>(params.eventRecord.event)(session);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return event_maker<client::WaitNode>(params.eventWait.event)(session);
    default:
      return std::unexpected<Failure>(
          Error{ErrorCode::kNotSupported, "this type of graph node is not supported yet"});
  }
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
