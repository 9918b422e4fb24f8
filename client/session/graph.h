// Graphs: commands with an order, kept on this side and sent anew at every launch, one after the
// other in an order that the edges allow, all on the stream of the launch. That is less parallel
// than a GPU runs them, and the same otherwise.
//
// Handles of graphs, nodes and executable graphs are addresses, looked up in Graphs before they are
// used. Everything here is guarded by Graphs::mutex unless it says otherwise; a graph may be
// destroyed without it. What fronts call is in graph_shape.h and graph_exec.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client/session/graph_work.h"
#include "client/session/refused.h"

namespace slate::client {

struct Exec;

struct Node {
  Graph* graph = nullptr;
  Work work;
  std::vector<Node*> before;  // in the order in which they were added
  bool enabled = true;        // of use in executable graphs only
};

class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  /// Requires: `before` are nodes of this graph, none twice.
  Node* add(Work work, std::vector<Node*> before);
  void remove(Node* node);
  /// Has nodes that allocate or free memory: such a graph cannot lose nodes or edges, be cloned, be
  /// in another one, or be instantiated twice at a time.
  bool has_memory_nodes() const;
  /// kInvalidValue for a FreeNode of memory that another one here frees already.
  Allowed<void> check_new(const Work& work) const;
  /// Finds the order of this graph and of those inside; false when one has a circle.
  bool arrange();
  /// All nodes, each behind those that it depends on, otherwise in the order of creation, as
  /// arrange() found them.
  const std::vector<Node*>& order() const { return order_; }
  /// `copies`: where each node's copy is; may be null.
  std::shared_ptr<Graph> clone(std::map<const Node*, Node*>* copies) const;
  /// The last executable graph that was made of it, if it is still there.
  std::weak_ptr<Exec> instance;

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> order_;
};

/// An address of a graph, a node or an executable graph, which may be gone.
using GraphHandle = const void*;
using NodeHandle = const void*;
using ExecHandle = const void*;

/// What lives. Of the process; never destroyed, like Process.
class Graphs {
 public:
  static Graphs& get();
  std::mutex mutex;

  GraphHandle enter(std::shared_ptr<Graph> graph);
  /// A handle of what somebody else owns: good while that lives, and not to be erased.
  GraphHandle lend(const std::shared_ptr<Graph>& graph);
  std::shared_ptr<Graph> find(GraphHandle handle) const;
  bool erase(GraphHandle handle);
  Node* find_node(NodeHandle handle) const;
  /// The nodes behind handles: kInvalidValue unless all are of `graph`, and none comes twice.
  Allowed<std::vector<Node*>> find_nodes(const Graph& graph,
                                         std::span<const NodeHandle> handles) const;
  ExecHandle enter_exec(std::shared_ptr<Exec> exec);
  std::shared_ptr<Exec> find_exec(ExecHandle handle) const;
  bool erase_exec(ExecHandle handle);
  // For Graph, with or without the mutex: what is live, or no longer.
  void node_lives(const Node* node);
  void node_dies(const Node* node);
  void graph_dies(const Graph* graph);
  /// The node's copy in the clone `graph`; null when it has none there.
  Node* find_in_clone(const Node* original, const Graph* graph) const;
  void remember_clone(const Graph* graph, std::map<const Node*, Node*> copies);

 private:
  static void lock_for_fork();
  static void unlock_after_fork();

  std::unordered_map<const void*, std::shared_ptr<Graph>> graphs_;
  std::unordered_map<const void*, std::shared_ptr<Exec>> execs_;
  std::unordered_map<const Graph*, std::map<const Node*, Node*>> clones_;
  /// Comes after `mutex`, and guards all below: graphs die wherever the last pointer to them goes.
  mutable std::mutex living_mutex_;
  std::unordered_set<const void*> nodes_;
  std::unordered_map<const void*, std::weak_ptr<Graph>> lent_;
};

}  // namespace slate::client
