// From the parameters of graph nodes, in the driver's structs, to the node's work, and back. Makers
// are (Session&) -> Maybe<Work>. Requires: the caller does not hold Graphs::mutex.
#pragma once

#include "client/driver/front.h"
#include "client/session/graph_lists.h"
#include "client/session/graph_makers.h"

namespace slate::driver {

using client::allocate_maker;
using client::child_maker;
using client::event_maker;
using client::free_maker;
using client::handle_of;
using client::handles_of;
using client::Work;

Maybe<Work> work_of(Session& session, const CUDA_KERNEL_NODE_PARAMS_v1& params);
Maybe<Work> work_of(Session& session, const CUDA_KERNEL_NODE_PARAMS_v2& params);
Maybe<Work> work_of(Session& session, const CUDA_MEMCPY_NODE_PARAMS& params);
Maybe<Work> work_of(Session& session, const CUDA_MEMSET_NODE_PARAMS_v2& params);
Maybe<Work> work_of(Session& session, const CUDA_HOST_NODE_PARAMS_v1& params);
/// Work of any kind, except a node that allocates.
Maybe<Work> work_of(Session& session, const CUgraphNodeParams& params);

CUDA_KERNEL_NODE_PARAMS_v2 params_of(const client::KernelNode& node);

/// Of one of the structs above.
template <typename Params>
auto maker(const Params* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return work_of(session, *params);
  };
}
inline auto maker(const CUDA_MEMCPY3D* params, CUcontext context) {
  return [params, context](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return work_of(session, CUDA_MEMCPY_NODE_PARAMS{0, 0, context, *params});
  };
}
inline auto maker(const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext context) {
  return [params, context](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return work_of(session, CUDA_MEMSET_NODE_PARAMS_v2{params->dst, params->pitch, params->value,
                                                       params->elementSize, params->width,
                                                       params->height, context});
  };
}

}  // namespace slate::driver
