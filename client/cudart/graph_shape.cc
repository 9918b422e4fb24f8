// The functions on graphs as wholes and on their edges.
#include "client/cudart/graph_params.h"
#include "client/session/graph_dot.h"

namespace slate::cudart {
namespace {

using Edges = client::EdgePlaces<cudaGraphNode_t, cudaGraphEdgeData>;

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (graph == nullptr || flags != 0) return deny(cudaErrorInvalidValue);
    return client::hand_over(graph, client::create_graph());
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer([&]() -> Answer { return client::destroy_graph(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return answer([&]() -> Answer {
    if (clone == nullptr) return deny(cudaErrorInvalidValue);
    return client::hand_over(clone, client::clone_graph(original));
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return answer([&]() -> Answer {
    if (node == nullptr) return deny(cudaErrorInvalidValue);
    return client::hand_over(node, client::find_in_clone(original, clone));
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return answer([&]() -> Answer {
    const auto work = client::work_of(node);
    if (!work) return std::unexpected<Failure>(work.error());
    return give(type, static_cast<cudaGraphNodeType>(client::kind_of(*work)));
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return answer(
      [&]() -> Answer { return client::tell_nodes(client::nodes_of(graph), nodes, count); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return answer(
      [&]() -> Answer { return client::tell_nodes(client::roots_of(graph), nodes, count); });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  return answer([&]() -> Answer {
    if (path == nullptr) return deny(cudaErrorInvalidValue);
    return client::write_dot(graph, path, flags != 0);
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, std::size_t* count) {
  return answer([&]() -> Answer {
    return client::tell_edges(client::edges_of(graph), Edges{from, to, data, count});
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, std::size_t* count) {
  return answer([&]() -> Answer {
    return client::tell_edges(client::edges_before(node), Edges{nodes, nullptr, data, count});
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, std::size_t* count) {
  return answer([&]() -> Answer {
    return client::tell_edges(client::edges_behind(node), Edges{nullptr, nodes, data, count});
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     std::size_t count) {
  return answer(
      [&]() -> Answer { return client::add_edges(graph, client::edges_between(from, to, count)); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        std::size_t count) {
  return answer([&]() -> Answer {
    return client::remove_edges(graph, client::edges_between(from, to, count));
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return answer([&]() -> Answer { return client::destroy_node(node); });
}

}  // extern "C"
