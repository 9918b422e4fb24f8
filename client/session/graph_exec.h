// Executable graphs by handle: made, launched, changed. kInvalidValue for a handle that is gone,
// and for nodes of another graph than the one that it was made of. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "client/session/graph.h"
#include "client/session/refused.h"

namespace slate::client {

/// An executable graph. A launch holds `running`, not Graphs::mutex.
struct Exec {
  std::shared_ptr<Graph> graph;  // its own copy, arranged
  /// Copies by the node of the original graph, those in graphs inside too. A node of `graph` is
  /// never replaced, only its work.
  std::map<const Node*, Node*> copies;
  std::uint64_t flags = 0;  // of instantiate()
  Mutex running;            // locked before Graphs::mutex; guards the nodes' work, too
  std::uint64_t launched SLATE_GUARDED_BY(running) = 0;     // event behind the last launch; 0: none
  std::uint64_t launched_in SLATE_GUARDED_BY(running) = 0;  // stream of the last launch
  std::uint64_t its_session SLATE_GUARDED_BY(running) = 0;  // serial() of the last launch's session

  Exec() = default;
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  ~Exec();
  /// Called before and after its nodes are sent to the stream. So launches of one executable graph
  /// follow one another, on any streams.
  Result<void> begin_launch(Session& session, std::uint64_t stream) SLATE_REQUIRES(running);
  Result<void> end_launch(Session& session, std::uint64_t stream) SLATE_REQUIRES(running);
};

/// Flags of a new executable graph, numbered as in all of CUDA's APIs.
inline constexpr std::uint64_t kInstantiateFreesOnLaunch = 1;
inline constexpr std::uint64_t kInstantiateUpload = 2;
inline constexpr std::uint64_t kInstantiateForKernels = 4;  // kNotSupported
inline constexpr std::uint64_t kInstantiateNodePriority = 8;
/// kInvalidValue for other flags, and for a graph with a circle.
Allowed<ExecHandle> instantiate(GraphHandle graph, std::uint64_t flags);
Allowed<void> destroy_exec(ExecHandle exec);
/// Null when it is gone.
std::shared_ptr<Exec> find_exec(ExecHandle exec);
/// Launches it, or makes it a node if the stream captures.
Allowed<void> launch_graph(Session& session, ExecHandle exec, std::uint64_t stream);

/// Calls `body` with the copy of `node` in an executable graph, which does not run meanwhile.
/// `body`: a (Node&) -> Allowed<T>. kInvalidValue when there is no such copy.
template <typename Body>
auto with_copy(ExecHandle exec, NodeHandle node, const Body& body)
    -> decltype(body(std::declval<Node&>())) {
  const auto its = find_exec(exec);
  if (!its) return refuse(Refusal::kInvalidValue);
  const MutexLock running(its->running);
  // The graph, and the node in it, must still exist.
  const MutexLock lock(Graphs::get().mutex);
  const Node* const original = Graphs::get().find_node(node);
  const auto at = its->copies.find(original);
  if (original == nullptr || at == its->copies.end()) return refuse(Refusal::kInvalidValue);
  return body(*at->second);
}
/// Replaces the work of a copy in with_copy(). kInvalidValue where CUDA refuses. Requires: `work`
/// is of the same kind.
Allowed<void> replace_work(Session& session, Node& copy, Work work);
Allowed<void> set_enabled(ExecHandle exec, NodeHandle node, bool enabled);
Allowed<bool> is_enabled(ExecHandle exec, NodeHandle node);

/// Why an executable graph cannot take over the work of another graph, and where. Numbered as in
/// all of CUDA's APIs.
struct UpdateVerdict {
  enum class Why { kNothing = 0, kError = 1, kTopology = 2, kKind = 3, kParameters = 5 };
  Why why = Why::kNothing;
  NodeHandle node = nullptr, from = nullptr;
};
/// Takes over the work of `graph`, unless that differs too much. kError: one of the two is gone.
UpdateVerdict update_exec(Session& session, ExecHandle exec, GraphHandle graph);

}  // namespace slate::client
