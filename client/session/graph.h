// Graphs: commands with an order, kept on the client's side and sent anew at every launch. They go
// one after the other, as the edges allow, on the launch's stream. A GPU runs them more in
// parallel; the results are the same.
//
// Handles of graphs, nodes and executable graphs are addresses, looked up in Graphs before use.
// Everything here is guarded by Graphs::mutex unless it says otherwise. A graph may be destroyed
// without it. The fronts call graph_shape.h and graph_exec.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "client/session/graph_work.h"
#include "client/session/refused.h"

namespace slate::client {

struct Exec;

struct Node {
  Graph* graph = nullptr;
  Work work;
  std::vector<Node*> before;  // in the order in which they were added
  bool enabled = true;        // for executable graphs only
};

class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  /// Requires: `before` are nodes of this graph, each only once.
  Node* add(Work work, std::vector<Node*> before);
  void remove(Node* node);
  /// Whether it has nodes that allocate or free memory. Such a graph cannot lose nodes or edges, be
  /// cloned, be part of another graph, or be instantiated twice at a time.
  bool has_memory_nodes() const;
  /// kInvalidValue for a FreeNode, if another node here frees the same memory.
  Allowed<void> check_new(const Work& work) const;
  /// Finds the order of this graph and of the graphs inside; false when one has a cycle.
  bool arrange();
  /// All nodes in arrange()'s order: each behind its dependencies, otherwise in the order of
  /// creation.
  const std::vector<Node*>& order() const { return order_; }
  /// `copies` gets each node's copy; may be null.
  std::shared_ptr<Graph> clone(std::map<const Node*, Node*>* copies) const;
  /// The last executable graph made of this one, if it still exists.
  std::weak_ptr<Exec> instance;

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> order_;
};

/// The address of a graph, a node or an executable graph, which may have been destroyed.
using GraphHandle = const void*;
using NodeHandle = const void*;
using ExecHandle = const void*;

/// The process's live graphs; never destroyed, like Process.
class Graphs {
 public:
  static Graphs& get();
  Mutex mutex;

  GraphHandle enter(std::shared_ptr<Graph> graph) SLATE_REQUIRES(mutex);
  /// A handle of a graph that something else owns: valid while that lives, and not to be erased.
  GraphHandle lend(const std::shared_ptr<Graph>& graph);
  std::shared_ptr<Graph> find(GraphHandle handle) const SLATE_REQUIRES(mutex);
  bool erase(GraphHandle handle) SLATE_REQUIRES(mutex);
  Node* find_node(NodeHandle handle) const;
  /// The nodes behind handles. kInvalidValue unless all are of `graph`, and each comes once.
  Allowed<std::vector<Node*>> find_nodes(const Graph& graph,
                                         std::span<const NodeHandle> handles) const;
  ExecHandle enter_exec(std::shared_ptr<Exec> exec) SLATE_REQUIRES(mutex);
  std::shared_ptr<Exec> find_exec(ExecHandle handle) const SLATE_REQUIRES(mutex);
  bool erase_exec(ExecHandle handle) SLATE_REQUIRES(mutex);
  // For Graph, with or without the mutex: the begin and the end of a node.
  void node_lives(const Node* node);
  void node_dies(const Node* node);
  void graph_dies(const Graph* graph);
  /// The node's copy in the clone `graph`; null when there is none.
  Node* find_in_clone(const Node* original, const Graph* graph) const SLATE_REQUIRES(mutex);
  void remember_clone(const Graph* graph, std::map<const Node*, Node*> copies)
      SLATE_REQUIRES(mutex);

 private:
  static void lock_for_fork() SLATE_NO_THREAD_SAFETY_ANALYSIS;
  static void unlock_after_fork() SLATE_NO_THREAD_SAFETY_ANALYSIS;

  std::unordered_map<const void*, std::shared_ptr<Graph>> graphs_ SLATE_GUARDED_BY(mutex);
  std::unordered_map<const void*, std::shared_ptr<Exec>> execs_ SLATE_GUARDED_BY(mutex);
  std::unordered_map<const Graph*, std::map<const Node*, Node*>> clones_ SLATE_GUARDED_BY(mutex);
  /// Locked after `mutex`. The last pointer to a graph may go anywhere.
  mutable Mutex living_mutex_;
  std::unordered_set<const void*> nodes_ SLATE_GUARDED_BY(living_mutex_);
  std::unordered_map<const void*, std::weak_ptr<Graph>> lent_ SLATE_GUARDED_BY(living_mutex_);
};

}  // namespace slate::client
