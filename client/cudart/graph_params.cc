#include "client/cudart/graph_params.h"

namespace slate::cudart {
namespace {

/// For both versions of the struct.
template <typename Params>
Maybe<Work> fill_work(Session& session, const Params& params) {
  return client::fill_work(session, {params.dst, params.pitch, params.value, params.elementSize,
                                     params.width, params.height});
}

// Parts of the struct that has all kinds.
Maybe<Work> work_of(Session& session, const cudaKernelNodeParamsV2& its) {
  return cudart::work_of(
      session, cudaKernelNodeParams{its.func, its.gridDim, its.blockDim, its.sharedMemBytes,
                                    its.kernelParams, its.extra});
}
Maybe<Work> work_of(Session& session, const cudaMemcpyNodeParams& params) {
  return cudart::work_of(session, params.copyParams);
}
Maybe<Work> work_of(Session& session, const cudaMemsetParamsV2& params) {
  return fill_work(session, params);
}
Maybe<Work> work_of(Session&, const cudaChildGraphNodeParams& params) {
  return client::child_work(params.graph);
}

}  // namespace

Maybe<Work> work_of(Session& session, const cudaKernelNodeParams& params) {
  if (params.extra != nullptr) {
    return std::unexpected<Failure>(Error{
        ErrorCode::kNotSupported, "kernel nodes with packed arguments are not supported yet"});
  }
  const client::LaunchConfig config{{params.gridDim.x, params.gridDim.y, params.gridDim.z},
                                    {params.blockDim.x, params.blockDim.y, params.blockDim.z},
                                    params.sharedMemBytes};
  return client::kernel_work(session, params.func, config, params.kernelParams);
}

Maybe<Work> work_of(Session& session, const cudaMemcpy3DParms& params) {
  return client::copy_work(session, box_copy_of(params));
}

Maybe<Work> work_of(Session& session, const cudaMemsetParams& params) {
  return fill_work(session, params);
}

Maybe<Work> work_of(Session&, const cudaHostNodeParams& params) {
  return client::host_work(params.fn, params.userData);
}

Maybe<Work> work_of(Session& session, const cudaGraphNodeParams& params) {
  return client::any_work(session, params, [&](const auto& its) { return work_of(session, its); });
}

}  // namespace slate::cudart
