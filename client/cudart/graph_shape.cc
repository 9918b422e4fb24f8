// The functions on graphs as wholes and on their edges.
#include <algorithm>
#include <cstring>

#include "client/cudart/graph.h"

namespace slate::cudart {
namespace {

template <typename Body>
cudaError_t about_graph(cudaGraph_t graph, const Body& body) {
  return answer([&]() -> Answer {
    const std::lock_guard lock(Graphs::get().mutex);
    const auto its = Graphs::get().find(graph);
    if (!its) return deny(cudaErrorInvalidValue);
    return body(*its);
  });
}

template <typename Body>
cudaError_t about_node(cudaGraphNode_t node, const Body& body) {
  return answer([&]() -> Answer {
    const std::lock_guard lock(Graphs::get().mutex);
    Node* const its = Graphs::get().find(node);
    if (its == nullptr) return deny(cudaErrorInvalidValue);
    return body(*its);
  });
}

/// Without places only counts; otherwise fills `*count` places, of which those beyond the nodes get
/// null, and tells how many there were.
Answer give_nodes(const std::vector<const Node*>& nodes, cudaGraphNode_t* places,
                  std::size_t* count) {
  if (count == nullptr) return deny(cudaErrorInvalidValue);
  if (places != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      places[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
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

Answer give_edges(const std::vector<std::pair<const Node*, const Node*>>& edges,
                  const EdgePlaces& places) {
  if (places.count == nullptr) return deny(cudaErrorInvalidValue);
  if (places.from == nullptr && places.to == nullptr) {
    *places.count = edges.size();
    return {};
  }
  std::vector<const Node*> from, to;
  for (const auto& [first, second] : edges) {
    from.push_back(first);
    to.push_back(second);
  }
  std::size_t count = *places.count;
  if (places.data != nullptr) std::memset(places.data, 0, count * sizeof(cudaGraphEdgeData));
  if (places.from != nullptr) (void)give_nodes(from, places.from, &(count = *places.count));
  if (places.to != nullptr) (void)give_nodes(to, places.to, &(count = *places.count));
  *places.count = count;
  return {};
}

enum class Change { kAdd, kRemove };

cudaError_t change_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                         std::size_t count, Change change) {
  return about_graph(graph, [&](Graph& its) -> Answer {
    if (change == Change::kRemove && its.has_memory_nodes()) return deny(cudaErrorNotSupported);
    if (count > 0 && (from == nullptr || to == nullptr)) return deny(cudaErrorInvalidValue);
    for (std::size_t i = 0; i < count; ++i) {
      Node* const first = Graphs::get().find(from[i]);
      Node* const second = Graphs::get().find(to[i]);
      if (first == nullptr || second == nullptr || first == second || first->graph != &its ||
          second->graph != &its) {
        return deny(cudaErrorInvalidValue);
      }
      const bool is_there = std::ranges::find(second->before, first) != second->before.end();
      if (is_there != (change == Change::kRemove)) return deny(cudaErrorInvalidValue);
      if (change == Change::kAdd) {
        second->before.push_back(first);
      } else {
        std::erase(second->before, first);
      }
    }
    return {};
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return with_session([&](Session&) -> Answer {
    if (graph == nullptr || flags != 0) return deny(cudaErrorInvalidValue);
    const std::lock_guard lock(Graphs::get().mutex);
    *graph = Graphs::get().enter(std::make_shared<Graph>());
    return {};
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return answer([&]() -> Answer {
    const std::lock_guard lock(Graphs::get().mutex);
    if (!Graphs::get().erase(graph)) return deny(cudaErrorInvalidValue);
    return {};
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return about_graph(original, [&](const Graph& its) -> Answer {
    if (clone == nullptr) return deny(cudaErrorInvalidValue);
    if (its.has_memory_nodes()) return deny(cudaErrorNotSupported);
    std::map<const Node*, Node*> copies;
    auto made = its.clone(&copies);
    Graphs::get().remember_clone(made.get(), std::move(copies));
    *clone = Graphs::get().enter(std::move(made));
    return {};
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return about_graph(clone, [&](const Graph& its) -> Answer {
    const Node* const source = Graphs::get().find(original);
    if (node == nullptr || source == nullptr) return deny(cudaErrorInvalidValue);
    const Node* const found = Graphs::get().find_in_clone(source, &its);
    if (found == nullptr) return deny(cudaErrorInvalidValue);
    *node = handle_of(found);
    return {};
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return about_node(node, [&](const Node& its) -> Answer {
    if (type == nullptr) return deny(cudaErrorInvalidValue);
    *type = type_of(its.work);
    return {};
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return about_graph(graph, [&](const Graph& its) {
    std::vector<const Node*> all;
    for (const auto& node : its.nodes()) all.push_back(node.get());
    return give_nodes(all, nodes, count);
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return about_graph(graph, [&](const Graph& its) {
    std::vector<const Node*> roots;
    for (const auto& node : its.nodes()) {
      if (node->before.empty()) roots.push_back(node.get());
    }
    return give_nodes(roots, nodes, count);
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, std::size_t* count) {
  return about_graph(graph, [&](const Graph& its) {
    std::vector<std::pair<const Node*, const Node*>> edges;
    for (const auto& node : its.nodes()) {
      for (const Node* before : node->before) edges.emplace_back(before, node.get());
    }
    return give_edges(edges, {from, to, data, count});
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, std::size_t* count) {
  return about_node(node, [&](const Node& its) {
    std::vector<std::pair<const Node*, const Node*>> edges;
    for (const Node* before : its.before) edges.emplace_back(before, &its);
    return give_edges(edges, {nodes, nullptr, data, count});
  });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, std::size_t* count) {
  return about_node(node, [&](const Node& its) {
    std::vector<std::pair<const Node*, const Node*>> edges;
    for (const auto& other : its.graph->nodes()) {
      if (std::ranges::find(other->before, &its) != other->before.end()) {
        edges.emplace_back(&its, other.get());
      }
    }
    return give_edges(edges, {nullptr, nodes, data, count});
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     std::size_t count) {
  return change_edges(graph, from, to, count, Change::kAdd);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        std::size_t count) {
  return change_edges(graph, from, to, count, Change::kRemove);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return about_node(node, [&](Node& its) -> Answer {
    if (its.graph->has_memory_nodes()) return deny(cudaErrorNotSupported);
    its.graph->remove(&its);
    return {};
  });
}

}  // extern "C"
