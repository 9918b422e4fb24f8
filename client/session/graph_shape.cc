#include "client/session/graph_shape.h"

#include <algorithm>

namespace slate::client {
namespace {

/// Calls `body` with the graph behind a handle.
template <typename Body>
auto with_graph(GraphHandle graph, const Body& body) -> decltype(body(std::declval<Graph&>())) {
  const MutexLock lock(Graphs::get().mutex);
  const auto its = Graphs::get().find(graph);
  if (!its) return refuse(Refusal::kInvalidValue);
  return body(*its);
}

template <typename Body>
auto with_node(NodeHandle node, const Body& body) -> decltype(body(std::declval<Node&>())) {
  const MutexLock lock(Graphs::get().mutex);
  Node* const its = Graphs::get().find_node(node);
  if (its == nullptr) return refuse(Refusal::kInvalidValue);
  return body(*its);
}

bool is_behind(const Node& node, const Node* other) {
  return std::ranges::find(node.before, other) != node.before.end();
}

enum class Change { kAdd, kRemove };

Allowed<void> change_edge(Graph& graph, const Edge& edge, Change change) {
  Node* const from = Graphs::get().find_node(edge.from);
  Node* const to = Graphs::get().find_node(edge.to);
  if (from == nullptr || to == nullptr || from == to || from->graph != &graph ||
      to->graph != &graph || is_behind(*to, from) != (change == Change::kRemove)) {
    return refuse(Refusal::kInvalidValue);
  }
  if (change == Change::kAdd) {
    to->before.push_back(from);
  } else {
    std::erase(to->before, from);
  }
  return {};
}

}  // namespace

GraphHandle create_graph() {
  const MutexLock lock(Graphs::get().mutex);
  return Graphs::get().enter(std::make_shared<Graph>());
}

Allowed<void> destroy_graph(GraphHandle graph) {
  const MutexLock lock(Graphs::get().mutex);
  if (!Graphs::get().erase(graph)) return refuse(Refusal::kInvalidValue);
  return {};
}

Allowed<GraphHandle> clone_graph(GraphHandle graph) {
  return with_graph(
      graph, [](const Graph& its) SLATE_REQUIRES(Graphs::get().mutex) -> Allowed<GraphHandle> {
        if (its.has_memory_nodes()) return refuse(Refusal::kNotSupported);
        std::map<const Node*, Node*> copies;
        auto made = its.clone(&copies);
        Graphs::get().remember_clone(made.get(), std::move(copies));
        return Graphs::get().enter(std::move(made));
      });
}

Allowed<NodeHandle> find_in_clone(NodeHandle original, GraphHandle clone) {
  return with_graph(
      clone, [&](const Graph& its) SLATE_REQUIRES(Graphs::get().mutex) -> Allowed<NodeHandle> {
        const Node* const source = Graphs::get().find_node(original);
        const Node* const found =
            source == nullptr ? nullptr : Graphs::get().find_in_clone(source, &its);
        if (found == nullptr) return refuse(Refusal::kInvalidValue);
        return found;
      });
}

Allowed<NodeHandle> add_node(GraphHandle graph, std::span<const NodeHandle> before, Work work) {
  return with_graph(graph, [&](Graph& its) -> Allowed<NodeHandle> {
    auto nodes = Graphs::get().find_nodes(its, before);
    if (!nodes) return std::unexpected(nodes.error());
    if (auto ok = its.check_new(work); !ok) return std::unexpected(ok.error());
    return its.add(std::move(work), std::move(*nodes));
  });
}

Allowed<void> destroy_node(NodeHandle node) {
  return with_node(node, [](Node& its) -> Allowed<void> {
    if (its.graph->has_memory_nodes()) return refuse(Refusal::kNotSupported);
    its.graph->remove(&its);
    return {};
  });
}

Allowed<Work> work_of(NodeHandle node) {
  return with_node(node, [](const Node& its) -> Allowed<Work> { return its.work; });
}

Allowed<Work> child_work(GraphHandle child) {
  return with_graph(child, [](const Graph& its) -> Allowed<Work> {
    if (its.has_memory_nodes()) return refuse(Refusal::kNotSupported);
    return Work(ChildNode{its.clone(nullptr)});
  });
}

Allowed<GraphHandle> child_of(NodeHandle node) {
  return with_node(node, [](const Node& its) -> Allowed<GraphHandle> {
    const auto* const child = std::get_if<ChildNode>(&its.work);
    if (child == nullptr) return refuse(Refusal::kInvalidValue);
    return Graphs::get().lend(child->graph);
  });
}

Allowed<std::vector<NodeHandle>> nodes_of(GraphHandle graph) {
  return with_graph(graph, [](const Graph& its) -> Allowed<std::vector<NodeHandle>> {
    std::vector<NodeHandle> all;
    for (const auto& node : its.nodes()) all.push_back(node.get());
    return all;
  });
}

Allowed<std::vector<NodeHandle>> roots_of(GraphHandle graph) {
  return with_graph(graph, [](const Graph& its) -> Allowed<std::vector<NodeHandle>> {
    std::vector<NodeHandle> roots;
    for (const auto& node : its.nodes()) {
      if (node->before.empty()) roots.push_back(node.get());
    }
    return roots;
  });
}

Allowed<std::vector<Edge>> edges_of(GraphHandle graph) {
  return with_graph(graph, [](const Graph& its) -> Allowed<std::vector<Edge>> {
    std::vector<Edge> edges;
    for (const auto& node : its.nodes()) {
      for (const Node* before : node->before) edges.push_back({before, node.get()});
    }
    return edges;
  });
}

Allowed<std::vector<Edge>> edges_before(NodeHandle node) {
  return with_node(node, [](const Node& its) -> Allowed<std::vector<Edge>> {
    std::vector<Edge> edges;
    for (const Node* before : its.before) edges.push_back({before, &its});
    return edges;
  });
}

Allowed<std::vector<Edge>> edges_behind(NodeHandle node) {
  return with_node(node, [](const Node& its) -> Allowed<std::vector<Edge>> {
    std::vector<Edge> edges;
    for (const auto& other : its.graph->nodes()) {
      if (is_behind(*other, &its)) edges.push_back({&its, other.get()});
    }
    return edges;
  });
}

Allowed<void> add_edges(GraphHandle graph, std::span<const Edge> edges) {
  return with_graph(graph, [&](Graph& its) -> Allowed<void> {
    for (const Edge& edge : edges) {
      if (auto ok = change_edge(its, edge, Change::kAdd); !ok) return ok;
    }
    return {};
  });
}

Allowed<void> remove_edges(GraphHandle graph, std::span<const Edge> edges) {
  return with_graph(graph, [&](Graph& its) -> Allowed<void> {
    if (its.has_memory_nodes()) return refuse(Refusal::kNotSupported);
    for (const Edge& edge : edges) {
      if (auto ok = change_edge(its, edge, Change::kRemove); !ok) return ok;
    }
    return {};
  });
}

}  // namespace slate::client
