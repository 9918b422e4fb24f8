// Executable graphs, by handle: made, launched, changed. kInvalidValue for one that is gone, and
// for nodes of other graphs than the one that it was made of. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "client/session/graph.h"
#include "client/session/refused.h"

namespace slate::client {

/// An executable graph. A launch holds `running`, not Graphs::mutex.
struct Exec {
  std::shared_ptr<Graph> graph;  // its own copy, arranged
  /// By the node of the graph that it was made of, also of those inside: no node of `graph` is ever
  /// replaced, only its work.
  std::map<const Node*, Node*> copies;
  std::uint64_t flags = 0;  // the front's
  bool frees = false;       // a launch frees what the last one allocated
  std::mutex running;       // comes before Graphs::mutex; guards the nodes' work, and what follows
  std::uint64_t launched = 0;  // event behind the last launch, for one in another stream; 0: none
  std::uint64_t launched_in = 0;  // the stream
  std::uint64_t its_session = 0;  // by serial()

  Exec() = default;
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  ~Exec();
  /// Before and after its nodes are given to the stream, by turns: launches of one executable graph
  /// follow one another, whatever their streams.
  Result<void> begin_launch(Session& session, std::uint64_t stream);
  Result<void> end_launch(Session& session, std::uint64_t stream);
};

/// `flags` are kept for the front.
Allowed<ExecHandle> instantiate(GraphHandle graph, std::uint64_t flags, bool frees);
Allowed<void> destroy_exec(ExecHandle exec);
/// Null when it is gone.
std::shared_ptr<Exec> find_exec(ExecHandle exec);
/// Or makes it a node of what the stream captures.
Allowed<void> launch_graph(Session& session, ExecHandle exec, std::uint64_t stream);

/// Calls `body` with the copy of `node` that is in an executable graph, which does not run
/// meanwhile: a (Node&) -> an expected<void, ...>. None when there is no such copy.
template <typename Body>
auto with_copy(ExecHandle exec, NodeHandle node, const Body& body)
    -> std::optional<decltype(body(std::declval<Node&>()))> {
  const auto its = find_exec(exec);
  if (!its) return std::nullopt;
  const std::lock_guard running(its->running);
  // The graph, and the node in it, have to be there still.
  const std::lock_guard lock(Graphs::get().mutex);
  const Node* const original = Graphs::get().find_node(node);
  const auto at = its->copies.find(original);
  if (original == nullptr || at == its->copies.end()) return std::nullopt;
  return body(*at->second);
}
/// For a copy in with_copy(): gives it the work, which is of its kind. kInvalidValue where CUDA
/// would not.
Allowed<void> replace_work(Session& session, Node& copy, Work work);
Allowed<void> set_enabled(ExecHandle exec, NodeHandle node, bool enabled);
Allowed<bool> is_enabled(ExecHandle exec, NodeHandle node);

/// Why an executable graph cannot take over the work of another graph, and where.
struct UpdateVerdict {
  enum class Why { kNothing, kError, kTopology, kKind, kParameters } why = Why::kNothing;
  NodeHandle node = nullptr, from = nullptr;
};
/// Gives it the work of `graph`, unless that differs too much. kError: one of them is gone.
UpdateVerdict update_exec(Session& session, ExecHandle exec, GraphHandle graph);

}  // namespace slate::client
