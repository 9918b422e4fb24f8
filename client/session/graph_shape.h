// Changes of graphs, their nodes and edges, by handle. kInvalidValue for a handle that is gone or
// never existed. kNotSupported for changes that graphs with memory nodes cannot have. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/session/graph.h"
#include "client/session/refused.h"

namespace slate::client {

GraphHandle create_graph();
Allowed<void> destroy_graph(GraphHandle graph);
Allowed<GraphHandle> clone_graph(GraphHandle graph);
Allowed<NodeHandle> find_in_clone(NodeHandle original, GraphHandle clone);

/// Adds a node behind the nodes `before`.
Allowed<NodeHandle> add_node(GraphHandle graph, std::span<const NodeHandle> before, Work work);
Allowed<void> destroy_node(NodeHandle node);
Allowed<Work> work_of(NodeHandle node);
/// The work of a node of one kind.
template <typename Kind>
Allowed<Kind> work_of_kind(NodeHandle node) {
  auto work = work_of(node);
  if (!work) return std::unexpected(work.error());
  Kind* const its = std::get_if<Kind>(&*work);
  if (its == nullptr) return refuse(Refusal::kInvalidValue);
  return std::move(*its);
}
/// Gives a node the work, unless `check` fails. `check`: a (Work& work, const Work& old) ->
/// Allowed<void>, called under Graphs::mutex.
template <typename Check>
Allowed<void> change_work(NodeHandle node, Work work, const Check& check) {
  const MutexLock lock(Graphs::get().mutex);
  Node* const its = Graphs::get().find_node(node);
  if (its == nullptr) return refuse(Refusal::kInvalidValue);
  auto ok = check(work, its->work);
  if (ok) its->work = std::move(work);
  return ok;
}
/// Work of a node with a copy of this graph, as it is now.
Allowed<Work> child_work(GraphHandle child);
/// The graph inside of such a node.
Allowed<GraphHandle> child_of(NodeHandle node);

// In the order of creation.
Allowed<std::vector<NodeHandle>> nodes_of(GraphHandle graph);
Allowed<std::vector<NodeHandle>> roots_of(GraphHandle graph);

struct Edge {
  NodeHandle from = nullptr, to = nullptr;
};
Allowed<std::vector<Edge>> edges_of(GraphHandle graph);
Allowed<std::vector<Edge>> edges_before(NodeHandle node);
Allowed<std::vector<Edge>> edges_behind(NodeHandle node);
/// Ends at the first edge that exists, or does not exist, already; the edges before it are changed.
Allowed<void> add_edges(GraphHandle graph, std::span<const Edge> edges);
Allowed<void> remove_edges(GraphHandle graph, std::span<const Edge> edges);

}  // namespace slate::client
