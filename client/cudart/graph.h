// Graphs: commands with an order, kept on this side and sent anew at every launch, one after the
// other in an order that the edges allow, all on the stream of the launch. That is less parallel
// than a GPU runs them, and the same otherwise.
//
// Handles of graphs, nodes and executable graphs are addresses, looked up in Graphs before they are
// used. Everything here is guarded by Graphs::mutex unless it says otherwise; a graph may be
// destroyed without it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "client/cudart/array.h"
#include "client/cudart/front.h"
#include "client/cudart/graph_memory.h"

namespace slate::cudart {

class Graph;
struct Exec;
struct Node;

// --- What a node does ---

struct EmptyNode {};

/// Immutable, so that copies of a node can share it.
struct PackedArguments {
  std::vector<std::byte> bytes;
  std::vector<void*> pointers;  // one a parameter, into `bytes`
};
struct KernelNode {
  client::Kernel* kernel = nullptr;
  void* function = nullptr;  // as the program named it
  dim3 grid, block;
  std::size_t shared = 0;
  std::shared_ptr<const PackedArguments> arguments;
  bool cooperative = false;
  dim3 cluster{0, 0, 0};
};
struct CopyNode {
  cudaMemcpy3DParms parms{};
  CopyUnit unit = CopyUnit::kElement;
};
struct FillNode {
  cudaMemsetParams params{};
};
struct HostNode {
  cudaHostFn_t function = nullptr;
  void* data = nullptr;
};
struct RecordNode {
  cudaEvent_t event = nullptr;
};
struct WaitNode {
  cudaEvent_t event = nullptr;
};
struct ChildNode {
  std::shared_ptr<Graph> graph;  // the node's own copy
};

struct AllocateNode {
  std::shared_ptr<GraphMemory> memory;
};
struct FreeNode {
  std::uint64_t address = 0;
};
Answer run(Session& session, const AllocateNode& node);
Answer run(Session& session, const FreeNode& node);

using Work = std::variant<EmptyNode, KernelNode, CopyNode, FillNode, HostNode, RecordNode, WaitNode,
                          ChildNode, AllocateNode, FreeNode>;
cudaGraphNodeType type_of(const Work& work);

/// The work of a kernel node, checked as a launch is.
Maybe<Work> kernel_work(Session& session, const cudaKernelNodeParams& params);
/// Has `work` take the place of a node's, which has to be of its kind: gives it what the parameters
/// that it was made of cannot say, and checks that.
Answer take_over(Session& session, const Work& old, Work& work);
/// Whether CUDA lets an executable graph have `next` in the place of `old`, of the same kind: of
/// copies and fills in two or three dimensions it does not take all.
bool can_become(Session& session, const Work& old, const Work& next);
Maybe<Work> copy_work(Session& session, const cudaMemcpy3DParms& parms);
Maybe<Work> fill_work(Session& session, const cudaMemsetParams& params);
/// The three dimensions of a plain copy.
cudaMemcpy3DParms line_parms(void* to, const void* from, std::size_t count, cudaMemcpyKind kind);
/// Does what the graph's nodes do that are enabled, on `stream` (an id). Takes no lock.
/// Requires: arrange().
Answer run_graph(Session& session, const Graph& graph, std::uint64_t stream);

// --- Graphs ---

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
  /// cudaErrorInvalidValue for a FreeNode of memory that another one here frees already.
  Answer check_new(const Work& work) const;
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

/// An executable graph. A launch holds `running`, not Graphs::mutex.
struct Exec {
  std::shared_ptr<Graph> graph;  // its own copy, arranged
  /// By the node of the graph that it was made of, also of those inside: no node of `graph` is ever
  /// replaced, only its work.
  std::map<const Node*, Node*> copies;
  unsigned long long flags = 0;
  std::mutex running;  // guards the nodes' work, and what follows
  /// An event behind the last launch, for the next one in another stream; 0: there was none.
  std::uint64_t launched = 0;
  std::uint64_t launched_in = 0;  // the stream
  std::uint64_t its_session = 0;  // by serial()

  Exec() = default;
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  ~Exec();
  /// Before and after its nodes are given to the stream, by turns: launches of one executable graph
  /// follow one another, whatever their streams.
  Answer begin_launch(Session& session, std::uint64_t stream);
  Answer end_launch(Session& session, std::uint64_t stream);
};

/// What lives. Of the process; never destroyed, like Process.
class Graphs {
 public:
  static Graphs& get();
  std::mutex mutex;

  cudaGraph_t enter(std::shared_ptr<Graph> graph);
  /// A handle of what somebody else owns: good while that lives, and not to be erased.
  cudaGraph_t lend(const std::shared_ptr<Graph>& graph);
  std::shared_ptr<Graph> find(cudaGraph_t handle) const;
  bool erase(cudaGraph_t handle);
  Node* find(cudaGraphNode_t handle) const;
  cudaGraphExec_t enter(std::shared_ptr<Exec> exec);
  std::shared_ptr<Exec> find(cudaGraphExec_t handle) const;
  bool erase(cudaGraphExec_t handle);
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

inline cudaGraphNode_t handle_of(const Node* node) {
  return reinterpret_cast<cudaGraphNode_t>(const_cast<Node*>(node));
}

/// The nodes behind handles: all of `graph`, none twice.
Maybe<std::vector<Node*>> nodes_of(const Graph& graph, const cudaGraphNode_t* handles,
                                   std::size_t count);

}  // namespace slate::cudart
