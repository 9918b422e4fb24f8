// From the parameters of graph nodes, in CUDA runtime's structs, to the node's work, and back.
// Makers are (Session&) -> Maybe<Work>. Requires: the caller does not hold Graphs::mutex.
#pragma once

#include "client/cudart/box.h"
#include "client/cudart/front.h"
#include "client/cudart/graph_handles.h"
#include "client/session/graph_shape.h"
#include "client/session/graph_work.h"

namespace slate::cudart {

using client::Work;

cudaGraphNodeType type_of(const Work& work);

Maybe<Work> kernel_work(Session& session, const cudaKernelNodeParams& params);
/// For both versions of the struct.
template <typename Params>
Maybe<Work> fill_work(Session& session, const Params& params) {
  return client::fill_work(session, {params.dst, params.pitch, params.value, params.elementSize,
                                     params.width, params.height});
}

inline auto maker(const cudaKernelNodeParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return kernel_work(session, *params);
  };
}
inline auto maker(const cudaMemcpy3DParms* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return client::copy_work(session, box_copy_of(*params));
  };
}
inline auto line_maker(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=](Session& session) -> Maybe<Work> {
    return client::copy_work(session, client::line_copy(to, from, bytes, direction_of(kind)));
  };
}
inline auto maker(const cudaMemsetParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return fill_work(session, *params);
  };
}
inline auto maker(const cudaHostNodeParams* params) {
  return [params](Session&) -> Maybe<Work> {
    if (params == nullptr || params->fn == nullptr) return deny(cudaErrorInvalidValue);
    return client::HostNode{params->fn, params->userData};
  };
}
template <typename EventNode>
auto event_maker(cudaEvent_t event) {
  return [event](Session& session) -> Maybe<Work> {
    const auto id = event_id(session, event);
    if (!id) return std::unexpected(id.error());
    return EventNode{*id};
  };
}
/// Allocates, and writes the address to the params. For both versions of the struct.
template <typename Params>
auto allocate_maker(Params* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr || params->poolProps.allocType != cudaMemAllocationTypePinned ||
        params->poolProps.location.type != cudaMemLocationTypeDevice ||
        params->poolProps.location.id != 0) {
      return deny(cudaErrorInvalidValue);
    }
    if (params->poolProps.handleTypes != cudaMemHandleTypeNone) {
      return deny(cudaErrorNotSupported);
    }
    auto work = client::allocate_work(session, params->bytesize);
    if (!work) return std::unexpected<Failure>(work.error());
    params->dptr = pointer_to(std::get<client::AllocateNode>(*work).memory->address());
    return std::move(*work);
  };
}
inline auto free_maker(void* address) {
  return [address](Session& session) -> Maybe<Work> {
    return client::free_work(session, address_of(address));
  };
}
/// Makes a copy of the graph as it is now.
inline auto child_maker(cudaGraph_t child) {
  return [child](Session&) -> Maybe<Work> { return client::child_work(child); };
}
/// Work of any kind, except a node that allocates.
Maybe<Work> any_work(Session& session, const cudaGraphNodeParams& params);
inline auto any_maker(const cudaGraphNodeParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return any_work(session, *params);
  };
}

}  // namespace slate::cudart
