// The functions on graphs as wholes and on their edges.
#include <algorithm>
#include <cstring>

#include "client/cudart/graph_params.h"

namespace slate::cudart {
namespace {

/// Without places only counts; otherwise fills `*count` places, of which those beyond the nodes get
/// null, and tells how many there were.
Answer give_nodes(const std::vector<client::NodeHandle>& nodes, cudaGraphNode_t* places,
                  std::size_t* count) {
  if (count == nullptr) return deny(cudaErrorInvalidValue);
  if (places != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      places[i] = i < nodes.size() ? handle_of<cudaGraphNode_t>(nodes[i]) : nullptr;
    }
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return {};
}

struct EdgePlaces {
  cudaGraphNode_t* from;
  cudaGraphNode_t* to;
  cudaGraphEdgeData* data;
  std::size_t* count;
};

/// `find` is a () -> Allowed<std::vector<client::Edge>>.
template <typename Find>
cudaError_t tell_edges(const Find& find, const EdgePlaces& places) {
  return answer([&]() -> Answer {
    const auto edges = find();
    if (!edges) return std::unexpected<Failure>(edges.error());
    if (places.count == nullptr) return deny(cudaErrorInvalidValue);
    if (places.from == nullptr && places.to == nullptr) {
      *places.count = edges->size();
      return {};
    }
    std::vector<client::NodeHandle> from, to;
    for (const auto& [first, second] : *edges) {
      from.push_back(first);
      to.push_back(second);
    }
    std::size_t count = *places.count;
    if (places.data != nullptr) std::memset(places.data, 0, count * sizeof(cudaGraphEdgeData));
    if (places.from != nullptr) (void)give_nodes(from, places.from, &(count = *places.count));
    if (places.to != nullptr) (void)give_nodes(to, places.to, &(count = *places.count));
    *places.count = count;
    return {};
  });
}

/// `find` is a () -> Allowed<std::vector<client::NodeHandle>>.
template <typename Find>
cudaError_t tell_nodes(const Find& find, cudaGraphNode_t* places, std::size_t* count) {
  return answer([&]() -> Answer {
    const auto nodes = find();
    if (!nodes) return std::unexpected<Failure>(nodes.error());
    return give_nodes(*nodes, places, count);
  });
}

/// A missing list of nodes is as good as one with a node that does not exist.
std::vector<client::Edge> edges_of(const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                   std::size_t count) {
  if (count > 0 && (from == nullptr || to == nullptr)) return {client::Edge{}};
  std::vector<client::Edge> edges;
  for (std::size_t i = 0; i < count; ++i) edges.push_back({from[i], to[i]});
  return edges;
}

/// Gives the graph, or node, that was made or found to the caller.
template <typename Handle>
Answer hand_over(Handle* where, const Allowed<const void*>& made) {
  if (!made) return std::unexpected<Failure>(made.error());
  *where = handle_of<Handle>(*made);
  return {};
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (graph == nullptr || flags != 0) return deny(cudaErrorInvalidValue);
    return hand_over(graph, client::create_graph());
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer([&]() -> Answer { return client::destroy_graph(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return answer([&]() -> Answer {
    if (clone == nullptr) return deny(cudaErrorInvalidValue);
    return hand_over(clone, client::clone_graph(original));
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return answer([&]() -> Answer {
    if (node == nullptr) return deny(cudaErrorInvalidValue);
    return hand_over(node, client::find_in_clone(original, clone));
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return answer([&]() -> Answer {
    const auto work = client::work_of(node);
    if (!work) return std::unexpected<Failure>(work.error());
    return give(type, type_of(*work));
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return tell_nodes([&] { return client::nodes_of(graph); }, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return tell_nodes([&] { return client::roots_of(graph); }, nodes, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, std::size_t* count) {
  return tell_edges([&] { return client::edges_of(graph); }, {from, to, data, count});
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, std::size_t* count) {
  return tell_edges([&] { return client::edges_before(node); }, {nodes, nullptr, data, count});
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, std::size_t* count) {
  return tell_edges([&] { return client::edges_behind(node); }, {nullptr, nodes, data, count});
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     std::size_t count) {
  return answer([&]() -> Answer { return client::add_edges(graph, edges_of(from, to, count)); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        std::size_t count) {
  return answer([&]() -> Answer { return client::remove_edges(graph, edges_of(from, to, count)); });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return answer([&]() -> Answer { return client::destroy_node(node); });
}

}  // extern "C"
