// The functions that make the nodes of graphs, and tell and change what they do. Changes of nodes
// in executable graphs are in graph_exec.cc.
#include "client/driver/box.h"
#include "client/driver/graph_params.h"
#include "client/occupancy/launch_rules.h"

namespace slate::driver {
namespace {

/// Adds what `make` makes, a (Session&) -> Maybe<Work>, to a graph.
template <typename Make>
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
                  const Make& make) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (node == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::hand_over(node,
                             client::add_node(graph, handles_of(before, count), std::move(*work)));
  });
}
CUresult add_any(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
                 CUgraphNodeParams* params) noexcept {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    return add_node(node, graph, before, count, allocate_maker(&params->alloc));
  }
  return add_node(node, graph, before, count, maker(params));
}

/// Calls `body` with the part of a node's work that is a T.
template <typename T, typename Body>
CUresult about_node(CUgraphNode node, const Body& body) noexcept {
  return initialised([&]() -> Answer {
    const auto its = client::work_of_kind<T>(node);
    if (!its) return std::unexpected<Failure>(its.error());
    return body(*its);
  });
}

/// Of a node that records one, or waits for it.
template <typename EventNode>
CUresult tell_event(CUgraphNode node, CUevent* event) noexcept {
  return about_node<EventNode>(node, [&](const EventNode& its) {
    return give(event, static_cast<CUevent>(pointer_to(its.event)));
  });
}

/// Gives a node other work of its kind.
template <typename Make>
CUresult change_node(CUgraphNode node, const Make& make) noexcept {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::change_node(session, node, std::move(*work));
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate::client;

extern "C" {

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return add_node(node, graph, before, count, maker(params));
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                 std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return add_node(node, graph, before, count, maker(params));
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              std::size_t count, const CUDA_MEMCPY3D* params, CUcontext context) {
  return add_node(node, graph, before, count, maker(params, context));
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              std::size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* params,
                              CUcontext context) {
  return add_node(node, graph, before, count, maker(params, context));
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                            std::size_t count, const CUDA_HOST_NODE_PARAMS_v1* params) {
  return add_node(node, graph, before, count, maker(params));
}
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                             std::size_t count) {
  return add_node(node, graph, before, count, empty_maker());
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                   std::size_t count, CUevent event) {
  return add_node(node, graph, before, count, event_maker<RecordNode>(event));
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                 std::size_t count, CUevent event) {
  return add_node(node, graph, before, count, event_maker<WaitNode>(event));
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                  std::size_t count, CUgraph child) {
  return add_node(node, graph, before, count, child_maker(child));
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return add_node(node, graph, before, count, allocate_maker(params));
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                               std::size_t count, CUdeviceptr address) {
  return add_node(node, graph, before, count, free_maker(address));
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                        std::size_t count, CUgraphNodeParams* params) {
  return add_any(node, graph, before, count, params);
}
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                           const CUgraphEdgeData*, std::size_t count, CUgraphNodeParams* params) {
  return add_any(node, graph, before, count, params);
}
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return change_node(node, maker(params));
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return about_node<KernelNode>(node, [&](const KernelNode& its) -> Answer {
    const CUDA_KERNEL_NODE_PARAMS_v2 told = params_of(its);
    return give(params,
                CUDA_KERNEL_NODE_PARAMS_v1{told.func, told.gridDimX, told.gridDimY, told.gridDimZ,
                                           told.blockDimX, told.blockDimY, told.blockDimZ,
                                           told.sharedMemBytes, told.kernelParams, nullptr});
  });
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return about_node<KernelNode>(
      node, [&](const KernelNode& its) -> Answer { return give(params, params_of(its)); });
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return change_node(node, maker(params));
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return change_node(node, maker(params));
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return with_session([&](Session& session) -> Answer {
    const auto its = work_of_kind<CopyNode>(node);
    if (!its) return std::unexpected<Failure>(its.error());
    const auto told = params_of(session, its->copy);
    if (!told) return std::unexpected(told.error());
    return give(params, *told);
  });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return change_node(node, maker(params, nullptr));
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return about_node<FillNode>(node, [&](const FillNode& its) {
    return give(params, CUDA_MEMSET_NODE_PARAMS_v1{address_of(its.to), its.pitch, its.value,
                                                   its.element, its.width, its.height});
  });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return change_node(node, maker(params, nullptr));
}
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1* params) {
  return about_node<HostNode>(node, [&](const HostNode& its) {
    return give(params, CUDA_HOST_NODE_PARAMS_v1{its.function, its.data});
  });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* params) {
  return change_node(node, maker(params));
}
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return tell_event<RecordNode>(node, event);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return change_node(node, event_maker<RecordNode>(event));
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return tell_event<WaitNode>(node, event);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return change_node(node, event_maker<WaitNode>(event));
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return initialised([&]() -> Answer { return hand_over(graph, child_of(node)); });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return about_node<AllocateNode>(node, [&](const AllocateNode& its) -> Answer {
    CUDA_MEM_ALLOC_NODE_PARAMS told{};
    told.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    told.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    told.bytesize = its.memory->bytes();
    told.dptr = its.memory->address();
    return give(params, told);
  });
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return about_node<FreeNode>(node,
                              [&](const FreeNode& its) { return give(address, its.address); });
}

}  // extern "C"
