// From the parameters of graph nodes, in the driver's structs, to the node's work, and back. Makers
// are (Session&) -> Maybe<Work>. Requires: the caller does not hold Graphs::mutex.
#pragma once

#include "client/driver/front.h"
#include "client/session/graph_lists.h"
#include "client/session/graph_shape.h"
#include "client/session/graph_work.h"

namespace slate::driver {

using client::handle_of;
using client::handles_of;
using client::Work;

CUgraphNodeType type_of(const Work& work);

/// What both versions of the struct have.
CUDA_KERNEL_NODE_PARAMS_v2 widened(const CUDA_KERNEL_NODE_PARAMS_v1& params);
Maybe<Work> kernel_work(Session& session, const CUDA_KERNEL_NODE_PARAMS_v2& params);
Maybe<Work> copy_work(Session& session, const CUDA_MEMCPY3D& params, CUcontext context);
Maybe<Work> fill_work(Session& session, const CUDA_MEMSET_NODE_PARAMS_v2& params);
/// Allocates, and writes the address to the params.
Maybe<Work> allocate_work(Session& session, CUDA_MEM_ALLOC_NODE_PARAMS_v2& params);
/// Work of any kind, except a node that allocates.
Maybe<Work> any_work(Session& session, const CUgraphNodeParams& params);

CUDA_KERNEL_NODE_PARAMS_v2 params_of(const client::KernelNode& node);

inline auto maker(const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return kernel_work(session, widened(*params));
  };
}
inline auto maker(const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return kernel_work(session, *params);
  };
}
inline auto maker(const CUDA_MEMCPY3D* params, CUcontext context) {
  return [params, context](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return copy_work(session, *params, context);
  };
}
inline auto maker(const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext context) {
  return [params, context](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return fill_work(session, {params->dst, params->pitch, params->value, params->elementSize,
                               params->width, params->height, context});
  };
}
inline auto maker(const CUDA_HOST_NODE_PARAMS_v1* params) {
  return [params](Session&) -> Maybe<Work> {
    if (params == nullptr || params->fn == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::HostNode{params->fn, params->userData};
  };
}
template <typename EventNode>
auto event_maker(CUevent event) {
  return [event](Session& session) -> Maybe<Work> {
    const auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    return EventNode{*id};
  };
}
/// For both versions of the struct, which are the same but for their names.
template <typename Params>
auto allocate_maker(Params* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 wanted{};
    wanted.poolProps = params->poolProps;
    wanted.bytesize = params->bytesize;
    auto work = allocate_work(session, wanted);
    if (work) params->dptr = wanted.dptr;
    return work;
  };
}
inline auto free_maker(CUdeviceptr address) {
  return [address](Session& session) -> Maybe<Work> { return client::free_work(session, address); };
}
/// Makes a copy of the graph as it is now.
inline auto child_maker(CUgraph child) {
  return [child](Session&) -> Maybe<Work> { return client::child_work(child); };
}
inline auto any_maker(const CUgraphNodeParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return any_work(session, *params);
  };
}

}  // namespace slate::driver
