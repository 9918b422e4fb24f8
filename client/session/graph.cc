#include "client/session/graph.h"

#include <pthread.h>

#include <algorithm>
#include <set>

namespace slate::client {

Graph::~Graph() {
  Graphs::get().graph_dies(this);
}

Node* Graph::add(Work work, std::vector<Node*> before) {
  nodes_.push_back(std::make_unique<Node>(Node{this, std::move(work), std::move(before)}));
  Graphs::get().node_lives(nodes_.back().get());
  return nodes_.back().get();
}

void Graph::remove(Node* node) {
  for (const auto& other : nodes_) std::erase(other->before, node);
  Graphs::get().node_dies(node);
  std::erase_if(nodes_, [&](const auto& item) { return item.get() == node; });
}

bool Graph::has_memory_nodes() const {
  return std::ranges::any_of(nodes_, [](const auto& node) {
    return std::holds_alternative<AllocateNode>(node->work) ||
           std::holds_alternative<FreeNode>(node->work);
  });
}

Allowed<void> Graph::check_new(const Work& work) const {
  const auto* const free = std::get_if<FreeNode>(&work);
  if (free == nullptr) return {};
  for (const auto& node : nodes_) {
    const auto* const other = std::get_if<FreeNode>(&node->work);
    if (other != nullptr && other->address == free->address) return refuse(Refusal::kInvalidValue);
  }
  return {};
}

bool Graph::arrange() {
  order_.clear();
  std::set<const Node*> done;
  // A node at a time, the first that can go: of the possible orders the one nearest to creation.
  std::vector<Node*> left;
  for (const auto& node : nodes_) left.push_back(node.get());
  while (!left.empty()) {
    const auto next = std::ranges::find_if(left, [&](const Node* node) {
      return std::ranges::all_of(node->before, [&](const Node* one) { return done.contains(one); });
    });
    if (next == left.end()) return false;
    const auto* const child = std::get_if<ChildNode>(&(*next)->work);
    if (child != nullptr && !child->graph->arrange()) return false;
    done.insert(*next);
    order_.push_back(*next);
    left.erase(next);
  }
  return true;
}

std::shared_ptr<Graph> Graph::clone(std::map<const Node*, Node*>* copies) const {
  auto made = std::make_shared<Graph>();
  std::map<const Node*, Node*> own;
  for (const auto& node : nodes_) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildNode>(&work)) child->graph = child->graph->clone(copies);
    Node* const copy = made->add(std::move(work), {});
    copy->enabled = node->enabled;
    own[node.get()] = copy;
  }
  for (const auto& node : nodes_) {
    for (const Node* before : node->before) own[node.get()]->before.push_back(own[before]);
  }
  if (copies != nullptr) copies->insert(own.begin(), own.end());
  return made;
}

Graphs& Graphs::get() {
  static Graphs* const instance = [] {
    // A forked child finds no half-made change.
    ::pthread_atfork(&Graphs::lock_for_fork, &Graphs::unlock_after_fork,
                     &Graphs::unlock_after_fork);
    return new Graphs;
  }();
  return *instance;
}

void Graphs::lock_for_fork() {
  get().mutex.lock();
  get().living_mutex_.lock();
  GraphMemory::lock_for_fork();
}

void Graphs::unlock_after_fork() {
  GraphMemory::unlock_after_fork();
  get().living_mutex_.unlock();
  get().mutex.unlock();
}

GraphHandle Graphs::enter(std::shared_ptr<Graph> graph) {
  Graph* const made = graph.get();
  graphs_.emplace(made, std::move(graph));
  const MutexLock lock(living_mutex_);
  lent_.erase(made);
  return made;
}

GraphHandle Graphs::lend(const std::shared_ptr<Graph>& graph) {
  const MutexLock lock(living_mutex_);
  lent_.insert_or_assign(graph.get(), graph);
  return graph.get();
}

std::shared_ptr<Graph> Graphs::find(GraphHandle handle) const {
  const auto at = graphs_.find(handle);
  if (at != graphs_.end()) return at->second;
  const MutexLock lock(living_mutex_);
  const auto lent = lent_.find(handle);
  return lent == lent_.end() ? nullptr : lent->second.lock();
}

bool Graphs::erase(GraphHandle handle) {
  const auto at = graphs_.find(handle);
  if (at == graphs_.end()) return false;
  clones_.erase(at->second.get());
  graphs_.erase(at);
  return true;
}

void Graphs::node_lives(const Node* node) {
  const MutexLock lock(living_mutex_);
  nodes_.insert(node);
}

void Graphs::node_dies(const Node* node) {
  const MutexLock lock(living_mutex_);
  nodes_.erase(node);
}

void Graphs::graph_dies(const Graph* graph) {
  const MutexLock lock(living_mutex_);
  for (const auto& node : graph->nodes()) nodes_.erase(node.get());
  lent_.erase(graph);
}

Node* Graphs::find_node(NodeHandle handle) const {
  const MutexLock lock(living_mutex_);
  if (!nodes_.contains(handle)) return nullptr;
  return static_cast<Node*>(const_cast<void*>(handle));
}

ExecHandle Graphs::enter_exec(std::shared_ptr<Exec> exec) {
  Exec* const made = exec.get();
  execs_.emplace(made, std::move(exec));
  return made;
}

std::shared_ptr<Exec> Graphs::find_exec(ExecHandle handle) const {
  const auto at = execs_.find(handle);
  return at == execs_.end() ? nullptr : at->second;
}

bool Graphs::erase_exec(ExecHandle handle) {
  return execs_.erase(handle) > 0;
}

Node* Graphs::find_in_clone(const Node* original, const Graph* graph) const {
  const auto clone = clones_.find(graph);
  if (clone == clones_.end()) return nullptr;
  const auto at = clone->second.find(original);
  const MutexLock lock(living_mutex_);
  return at == clone->second.end() || !nodes_.contains(at->second) ? nullptr : at->second;
}

void Graphs::remember_clone(const Graph* graph, std::map<const Node*, Node*> copies) {
  clones_[graph] = std::move(copies);
}

Allowed<std::vector<Node*>> Graphs::find_nodes(const Graph& graph,
                                               std::span<const NodeHandle> handles) const {
  std::vector<Node*> nodes;
  for (const NodeHandle handle : handles) {
    Node* const node = find_node(handle);
    if (node == nullptr || node->graph != &graph || std::ranges::find(nodes, node) != nodes.end()) {
      return refuse(Refusal::kInvalidValue);
    }
    nodes.push_back(node);
  }
  return nodes;
}

}  // namespace slate::client
