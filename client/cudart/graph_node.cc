// The functions that make the nodes of graphs, and tell and change what they do. Changes of nodes
// in executable graphs are in graph_exec.cc.
#include "client/cudart/graph_params.h"
#include "client/occupancy/launch_rules.h"

namespace slate::cudart {
namespace {

/// Adds what `make` makes, a (Session&) -> Maybe<Work>, to a graph.
template <typename Make>
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     std::size_t count, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    if (node == nullptr) return deny(cudaErrorInvalidValue);
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::hand_over(node,
                             client::add_node(graph, handles_of(before, count), std::move(*work)));
  });
}

/// Calls `body` with the part of a node's work that is a T.
template <typename T, typename Body>
cudaError_t about_node(cudaGraphNode_t node, const Body& body) {
  return answer([&]() -> Answer {
    const auto its = client::work_of_kind<T>(node);
    if (!its) return std::unexpected<Failure>(its.error());
    return body(*its);
  });
}

/// Of a node that records one, or waits for it.
template <typename EventNode>
cudaEvent_t event_of(const EventNode& node) {
  return static_cast<cudaEvent_t>(pointer_to(node.event));
}

/// Gives a node other work of its kind.
template <typename Make>
cudaError_t change_node(cudaGraphNode_t node, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::change_node(session, node, std::move(*work));
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate::client;

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, std::size_t count,
                                   const cudaKernelNodeParams* params) {
  return add_node(node, graph, before, count, maker(params));
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, std::size_t count,
                                   const cudaMemcpy3DParms* params) {
  return add_node(node, graph, before, count, maker(params));
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* before, std::size_t count, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return add_node(node, graph, before, count, line_maker(to, from, bytes, kind));
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, std::size_t count,
                                   const cudaMemsetParams* params) {
  return add_node(node, graph, before, count, maker(params));
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* before, std::size_t count,
                                 const cudaHostNodeParams* params) {
  return add_node(node, graph, before, count, maker(params));
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* before, std::size_t count) {
  return add_node(node, graph, before, count, empty_maker());
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* before, std::size_t count,
                                        cudaEvent_t event) {
  return add_node(node, graph, before, count, event_maker<RecordNode>(event));
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* before, std::size_t count,
                                      cudaEvent_t event) {
  return add_node(node, graph, before, count, event_maker<WaitNode>(event));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* before, std::size_t count,
                                       cudaGraph_t child) {
  return add_node(node, graph, before, count, child_maker(child));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* before, std::size_t count,
                                     cudaMemAllocNodeParams* params) {
  return add_node(node, graph, before, count, allocate_maker(params));
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* before, std::size_t count,
                                    void* address) {
  return add_node(node, graph, before, count, free_maker(address));
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  return about_node<AllocateNode>(node, [&](const AllocateNode& its) -> Answer {
    cudaMemAllocNodeParams told{};
    told.poolProps.allocType = cudaMemAllocationTypePinned;
    told.poolProps.location = {cudaMemLocationTypeDevice, 0};
    told.bytesize = its.memory->bytes();
    told.dptr = pointer_to(its.memory->address());
    return give(params, told);
  });
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address) {
  return about_node<FreeNode>(node, [&](const FreeNode& its) {
    return give(static_cast<void**>(address), pointer_to(its.address));
  });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* before, const cudaGraphEdgeData*,
                             std::size_t count, cudaGraphNodeParams* params) {
  if (params != nullptr && params->type == cudaGraphNodeTypeMemAlloc) {
    return add_node(node, graph, before, count, allocate_maker(&params->alloc));
  }
  return add_node(node, graph, before, count, maker(params));
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return change_node(node, maker(params));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  return about_node<KernelNode>(node, [&](const KernelNode& its) -> Answer {
    const auto size = [](const std::array<std::uint32_t, 3>& each) {
      return dim3(each[0], each[1], each[2]);
    };
    cudaKernelNodeParams told{};
    told.func = const_cast<void*>(its.named);
    told.gridDim = size(its.config.grid);
    told.blockDim = size(its.config.block);
    told.sharedMemBytes = static_cast<unsigned>(its.config.dynamic_shared_bytes);
    told.kernelParams = const_cast<void**>(its.arguments->pointers.data());
    return give(params, told);
  });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return change_node(node, maker(params));
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  return about_node<CopyNode>(node, [&](const CopyNode& its) -> Answer {
    // Parts of elements have no cudaMemcpy3DParms.
    if (its.copy.unit == CopyUnit::kByte) return deny(cudaErrorInvalidValue);
    return give(params, parms_of(its.copy));
  });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return change_node(node, maker(params));
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           std::size_t bytes, cudaMemcpyKind kind) {
  return change_node(node, line_maker(to, from, bytes, kind));
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return about_node<FillNode>(node, [&](const FillNode& its) {
    return give(params,
                cudaMemsetParams{its.to, its.pitch, its.value, its.element, its.width, its.height});
  });
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return change_node(node, maker(params));
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  return about_node<HostNode>(node, [&](const HostNode& its) {
    return give(params, cudaHostNodeParams{its.function, its.data});
  });
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return change_node(node, maker(params));
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return about_node<RecordNode>(node,
                                [&](const RecordNode& its) { return give(event, event_of(its)); });
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return change_node(node, event_maker<RecordNode>(event));
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return about_node<WaitNode>(node,
                              [&](const WaitNode& its) { return give(event, event_of(its)); });
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return change_node(node, event_maker<WaitNode>(event));
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return answer([&]() -> Answer { return hand_over(graph, child_of(node)); });
}

}  // extern "C"
