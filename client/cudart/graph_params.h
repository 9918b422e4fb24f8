// From the parameters of graph nodes, as CUDA's structs have them, to what the node does: makers
// are (Session&) -> Maybe<Work>, to be called without Graphs::mutex.
#pragma once

#include <cstring>

#include "client/cudart/graph.h"

namespace slate::cudart {

inline auto maker(const cudaKernelNodeParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return kernel_work(session, *params);
  };
}
inline auto maker(const cudaMemcpy3DParms* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return copy_work(session, *params);
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
    return HostNode{params->fn, params->userData};
  };
}
template <typename EventNode>
auto event_maker(cudaEvent_t event) {
  return [event](Session& session) -> Maybe<Work> {
    if (auto id = event_id(session, event); !id) return std::unexpected(id.error());
    return EventNode{event};
  };
}
/// Allocates, and tells the address in the params. Of both versions of the struct.
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
    auto memory = GraphMemory::make(session, params->bytesize);
    if (!memory) return std::unexpected(memory.error());
    params->dptr = pointer_to((*memory)->address());
    return AllocateNode{std::move(*memory)};
  };
}
inline auto free_maker(void* address) {
  return [address](Session& session) -> Maybe<Work> {
    if (!GraphMemory::is_of_graphs(session, address_of(address))) {
      return deny(cudaErrorInvalidValue);
    }
    return FreeNode{address_of(address)};
  };
}
/// A copy of the graph as it is now.
inline auto child_maker(cudaGraph_t child) {
  return [child](Session&) -> Maybe<Work> {
    const std::lock_guard lock(Graphs::get().mutex);
    const auto its = Graphs::get().find(child);
    if (!its) return deny(cudaErrorInvalidValue);
    if (its->has_memory_nodes()) return deny(cudaErrorNotSupported);
    return ChildNode{its->clone(nullptr)};
  };
}

inline auto any_maker(const cudaGraphNodeParams* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    switch (static_cast<int>(params->type)) {
      case cudaGraphNodeTypeKernel: {
        const cudaKernelNodeParamsV2& its = params->kernel;
        const cudaKernelNodeParams plain{its.func,           its.gridDim,      its.blockDim,
                                         its.sharedMemBytes, its.kernelParams, its.extra};
        return kernel_work(session, plain);
      }
      case cudaGraphNodeTypeMemcpy:
        return copy_work(session, params->memcpy.copyParams);
      case cudaGraphNodeTypeMemset: {
        const cudaMemsetParamsV2& its = params->memset;
        return fill_work(session,
                         {its.dst, its.pitch, its.value, its.elementSize, its.width, its.height});
      }
      case cudaGraphNodeTypeHost:
        if (params->host.fn == nullptr) return deny(cudaErrorInvalidValue);
        return HostNode{params->host.fn, params->host.userData};
      case cudaGraphNodeTypeGraph:
        return child_maker(params->graph.graph)(session);
      case cudaGraphNodeTypeMemFree:
        return free_maker(params->free.dptr)(session);
      case cudaGraphNodeTypeEmpty:
        return EmptyNode{};
      case cudaGraphNodeTypeEventRecord:
        return event_maker<RecordNode>(params->eventRecord.event)(session);
      case cudaGraphNodeTypeWaitEvent:
        return event_maker<WaitNode>(params->eventWait.event)(session);
      default:
        return std::unexpected<Failure>(
            Error{ErrorCode::kNotSupported, "this type of graph node is not supported yet"});
    }
  };
}

}  // namespace slate::cudart
