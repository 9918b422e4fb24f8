// The functions that make the nodes of graphs, and tell and change what they do. Changes of nodes
// in executable graphs are in graph_exec.cc.
#include <cstring>

#include "client/cudart/graph.h"
#include "client/cudart/graph_params.h"

namespace slate::cudart {
namespace {

/// Adds what `make` makes, a (Session&) -> Maybe<Work>, to a graph.
template <typename Make>
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     std::size_t count, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    if (node == nullptr) return deny(cudaErrorInvalidValue);
    // Before the lock: it may load code.
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    const std::lock_guard lock(Graphs::get().mutex);
    const auto its = Graphs::get().find(graph);
    if (!its) return deny(cudaErrorInvalidValue);
    auto nodes = nodes_of(*its, before, count);
    if (!nodes) return std::unexpected(nodes.error());
    if (auto ok = its->check_new(*work); !ok) return ok;
    *node = handle_of(its->add(std::move(*work), std::move(*nodes)));
    return {};
  });
}

/// Calls `body` with the part of a node's work that is a T.
template <typename T, typename Body>
cudaError_t about_node(cudaGraphNode_t node, const Body& body) {
  return answer([&]() -> Answer {
    const std::lock_guard lock(Graphs::get().mutex);
    Node* const its = Graphs::get().find(node);
    T* const work = its == nullptr ? nullptr : std::get_if<T>(&its->work);
    if (work == nullptr) return deny(cudaErrorInvalidValue);
    return body(*work);
  });
}

/// Gives a node other work of its kind.
template <typename Make>
cudaError_t change_node(cudaGraphNode_t node, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    const std::lock_guard lock(Graphs::get().mutex);
    Node* const its = Graphs::get().find(node);
    if (its == nullptr) return deny(cudaErrorInvalidValue);
    if (auto ok = take_over(session, its->work, *work); !ok) return ok;
    its->work = std::move(*work);
    return {};
  });
}

template <typename T>
Answer give(T* where, const T& value) {
  if (where == nullptr) return deny(cudaErrorInvalidValue);
  *where = value;
  return {};
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

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
  const cudaMemcpy3DParms params = line_parms(to, from, bytes, kind);
  return add_node(node, graph, before, count, maker(&params));
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
  return add_node(node, graph, before, count, [](Session&) -> Maybe<Work> { return EmptyNode{}; });
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
  return add_node(node, graph, before, count, any_maker(params));
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return change_node(node, any_maker(params));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  return about_node<KernelNode>(node, [&](const KernelNode& its) -> Answer {
    cudaKernelNodeParams told{};
    told.func = its.function;
    told.gridDim = its.grid;
    told.blockDim = its.block;
    told.sharedMemBytes = static_cast<unsigned>(its.shared);
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
    if (its.unit == CopyUnit::kByte) return deny(cudaErrorInvalidValue);
    return give(params, its.parms);
  });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return change_node(node, maker(params));
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           std::size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = line_parms(to, from, bytes, kind);
  return change_node(node, maker(&params));
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return about_node<FillNode>(node, [&](const FillNode& its) { return give(params, its.params); });
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
                                [&](const RecordNode& its) { return give(event, its.event); });
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return change_node(node, event_maker<RecordNode>(event));
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return about_node<WaitNode>(node, [&](const WaitNode& its) { return give(event, its.event); });
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return change_node(node, event_maker<WaitNode>(event));
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return about_node<ChildNode>(node, [&](const ChildNode& its) -> Answer {
    if (graph == nullptr) return deny(cudaErrorInvalidValue);
    *graph = Graphs::get().lend(its.graph);
    return {};
  });
}

}  // extern "C"
