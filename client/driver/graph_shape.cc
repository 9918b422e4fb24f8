// The functions on graphs as wholes and on their edges. All edges are plain, so that the versions
// of a function with and without data of edges mean the same.
#include "client/driver/graph_params.h"
#include "client/session/graph_dot.h"

namespace slate::driver {
namespace {

using EdgePlaces = client::EdgePlaces<CUgraphNode, CUgraphEdgeData>;

CUresult add_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                   std::size_t count) noexcept {
  return initialised(
      [&]() -> Answer { return client::add_edges(graph, client::edges_between(from, to, count)); });
}
CUresult remove_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                      std::size_t count) noexcept {
  return initialised([&]() -> Answer {
    return client::remove_edges(graph, client::edges_between(from, to, count));
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  return initialised([&]() -> Answer {
    if (graph == nullptr || flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::hand_over(graph, client::create_graph());
  });
}
CUresult cuGraphDestroy(CUgraph graph) {
  return initialised([&]() -> Answer { return client::destroy_graph(graph); });
}
CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  return initialised([&]() -> Answer {
    if (clone == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::hand_over(clone, client::clone_graph(original));
  });
}
CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  return initialised([&]() -> Answer {
    if (node == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::hand_over(node, client::find_in_clone(original, clone));
  });
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return initialised([&]() -> Answer {
    const auto work = client::work_of(node);
    if (!work) return std::unexpected<Failure>(work.error());
    return give(type, client::kind_of(*work));
  });
}
CUresult cuGraphDestroyNode(CUgraphNode node) {
  return initialised([&]() -> Answer { return client::destroy_node(node); });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return initialised(
      [&]() -> Answer { return client::tell_nodes(client::nodes_of(graph), nodes, count); });
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  return initialised(
      [&]() -> Answer { return client::tell_nodes(client::roots_of(graph), nodes, count); });
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  return initialised([&]() -> Answer {
    if (path == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::write_dot(graph, path, flags != 0);
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_of(graph), EdgePlaces{from, to, nullptr, count});
  });
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_of(graph), EdgePlaces{from, to, data, count});
  });
}
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_before(node),
                              EdgePlaces{nodes, nullptr, nullptr, count});
  });
}
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                       std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_before(node), EdgePlaces{nodes, nullptr, data, count});
  });
}
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_behind(node),
                              EdgePlaces{nullptr, nodes, nullptr, count});
  });
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, std::size_t* count) {
  return initialised([&]() -> Answer {
    return client::tell_edges(client::edges_behind(node), EdgePlaces{nullptr, nodes, data, count});
  });
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t count) {
  return add_edges(graph, from, to, count);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, std::size_t count) {
  return add_edges(graph, from, to, count);
}
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t count) {
  return remove_edges(graph, from, to, count);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, std::size_t count) {
  return remove_edges(graph, from, to, count);
}

}  // extern "C"
