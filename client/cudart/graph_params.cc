#include "client/cudart/graph_params.h"

namespace slate::cudart {

cudaGraphNodeType type_of(const Work& work) {
  static constexpr cudaGraphNodeType kTypes[] = {
      cudaGraphNodeTypeEmpty,     cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy,
      cudaGraphNodeTypeMemset,    cudaGraphNodeTypeHost,   cudaGraphNodeTypeEventRecord,
      cudaGraphNodeTypeWaitEvent, cudaGraphNodeTypeGraph,  cudaGraphNodeTypeMemAlloc,
      cudaGraphNodeTypeMemFree};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

Maybe<Work> kernel_work(Session& session, const cudaKernelNodeParams& params) {
  if (params.extra != nullptr) {
    return std::unexpected<Failure>(Error{
        ErrorCode::kNotSupported, "kernel nodes with packed arguments are not supported yet"});
  }
  const client::LaunchConfig config{{params.gridDim.x, params.gridDim.y, params.gridDim.z},
                                    {params.blockDim.x, params.blockDim.y, params.blockDim.z},
                                    params.sharedMemBytes};
  return client::kernel_work(session, params.func, config, params.kernelParams);
}

Maybe<Work> any_work(Session& session, const cudaGraphNodeParams& params) {
  switch (static_cast<int>(params.type)) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParamsV2& its = params.kernel;
      const cudaKernelNodeParams plain{its.func,           its.gridDim,      its.blockDim,
                                       its.sharedMemBytes, its.kernelParams, its.extra};
      return kernel_work(session, plain);
    }
    case cudaGraphNodeTypeMemcpy:
      return client::copy_work(session, box_copy_of(params.memcpy.copyParams));
    case cudaGraphNodeTypeMemset:
      return fill_work(session, params.memset);
    case cudaGraphNodeTypeHost:
      if (params.host.fn == nullptr) return deny(cudaErrorInvalidValue);
      return client::HostNode{params.host.fn, params.host.userData};
    case cudaGraphNodeTypeGraph:
      return child_maker(params.graph.graph)(session);
    case cudaGraphNodeTypeMemFree:
      return free_maker(params.free.dptr)(session);
    case cudaGraphNodeTypeEmpty:
      return client::EmptyNode{};
    case cudaGraphNodeTypeEventRecord:
      return event_maker<client::RecordNode>(params.eventRecord.event)(session);
    case cudaGraphNodeTypeWaitEvent:
      return event_maker<client::WaitNode>(params.eventWait.event)(session);
    default:
      return std::unexpected<Failure>(
          Error{ErrorCode::kNotSupported, "this type of graph node is not supported yet"});
  }
}

}  // namespace slate::cudart
