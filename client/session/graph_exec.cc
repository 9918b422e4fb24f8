#include "client/session/graph_exec.h"

#include <algorithm>

#include "client/session/captures.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

using Why = UpdateVerdict::Why;

UpdateVerdict compare(Session& session, const Graph& mine, const Graph& other) {
  if (mine.nodes().size() != other.nodes().size()) return {Why::kTopology};
  std::map<const Node*, std::size_t> place;
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) place[mine.nodes()[i].get()] = i;
  for (std::size_t i = 0; i < other.nodes().size(); ++i) place[other.nodes()[i].get()] = i;
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) {
    const Node& now = *mine.nodes()[i];
    const Node& next = *other.nodes()[i];
    if (now.work.index() != next.work.index()) return {Why::kKind, &next};
    if (now.before.size() != next.before.size()) return {Why::kTopology, &next};
    for (std::size_t edge = 0; edge < now.before.size(); ++edge) {
      if (place[now.before[edge]] != place[next.before[edge]]) {
        return {Why::kTopology, &next, next.before[edge]};
      }
    }
    if (const auto* child = std::get_if<ChildNode>(&now.work)) {
      const auto inside = compare(session, *child->graph, *std::get<ChildNode>(next.work).graph);
      if (inside.why != Why::kNothing) return inside;
    }
    if (!can_become(session, now.work, next.work)) return {Why::kParameters, &next};
  }
  return {};
}

/// Requires: compare() found no reason against it.
void assign_works(Graph& mine, const Graph& other) {
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) {
    Work& work = mine.nodes()[i]->work;
    const Work& next = other.nodes()[i]->work;
    if (const auto* child = std::get_if<ChildNode>(&work)) {
      assign_works(*child->graph, *std::get<ChildNode>(next).graph);
    } else {
      work = next;
    }
  }
}

/// What an earlier launch allocated has to be freed, unless launches do that by themselves.
Allowed<void> settle_allocations(const Exec& exec) {
  for (const Node* node : exec.graph->order()) {
    const auto* allocation = std::get_if<AllocateNode>(&node->work);
    if (allocation == nullptr || !allocation->memory->is_allocated()) continue;
    if ((exec.flags & kInstantiateFreesOnLaunch) == 0) return refuse(Refusal::kInvalidValue);
    allocation->memory->set_allocated(false);
  }
  return {};
}

}  // namespace

Exec::~Exec() {
  Session* const session = Process::get().current(its_session);
  if (launched == 0 || session == nullptr) return;
  (void)session->events().destroy(launched);  // fails only when the session has ended
}

Result<void> Exec::begin_launch(Session& session, std::uint64_t stream) {
  if (launched == 0 || its_session != session.serial()) {
    const auto event = session.events().create(ipc::kEventNoTiming);
    if (!event) return std::unexpected(event.error());
    launched = *event;
    its_session = session.serial();
  } else if (stream != launched_in) {
    return session.events().wait(stream, launched);
  }
  return {};
}

Result<void> Exec::end_launch(Session& session, std::uint64_t stream) {
  launched_in = stream;
  return session.events().record(launched, stream);
}

Allowed<ExecHandle> instantiate(GraphHandle graph, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = kInstantiateFreesOnLaunch | kInstantiateUpload |
                                   kInstantiateForKernels | kInstantiateNodePriority;
  if ((flags & ~kKnown) != 0) return refuse(Refusal::kInvalidValue);
  if ((flags & kInstantiateForKernels) != 0) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kNotSupported, "graphs that kernels launch are not supported yet"});
  }
  const MutexLock lock(Graphs::get().mutex);
  const auto its = Graphs::get().find(graph);
  if (!its) return refuse(Refusal::kInvalidValue);
  const bool once = its->has_memory_nodes();
  if (once && !its->instance.expired()) return refuse(Refusal::kNotSupported);
  auto made = std::make_shared<Exec>();
  made->graph = its->clone(&made->copies);
  if (!made->graph->arrange()) return refuse(Refusal::kInvalidValue);
  made->flags = flags;
  if (once) its->instance = made;
  return Graphs::get().enter_exec(std::move(made));
}

Allowed<void> destroy_exec(ExecHandle exec) {
  const MutexLock lock(Graphs::get().mutex);
  if (!Graphs::get().erase_exec(exec)) return refuse(Refusal::kInvalidValue);
  return {};
}

std::shared_ptr<Exec> find_exec(ExecHandle exec) {
  const MutexLock lock(Graphs::get().mutex);
  return Graphs::get().find_exec(exec);
}

Allowed<void> launch_graph(Session& session, ExecHandle exec, std::uint64_t stream) {
  const auto its = find_exec(exec);
  if (!its) return refuse(Refusal::kInvalidValue);
  const MutexLock running(its->running);
  // A launch of a graph that is captured becomes a node with a copy of it.
  if (session.captures().takes(stream)) {
    Work work;
    {
      const MutexLock lock(Graphs::get().mutex);
      if (its->graph->has_memory_nodes()) return refuse(Refusal::kNotSupported);
      work = ChildNode{its->graph->clone(nullptr)};
    }
    if (auto taken = session.captures().add(stream, std::move(work))) return *taken;
  }
  if (auto ok = settle_allocations(*its); !ok) return ok;
  if (auto ok = its->begin_launch(session, stream); !ok) return ok;
  auto done = run_graph(session, *its->graph, stream);
  const auto ended = its->end_launch(session, stream);
  return done ? Allowed<void>(ended) : done;
}

Allowed<void> replace_work(Session& session, Node& copy, Work work) {
  if (const auto* child = std::get_if<ChildNode>(&copy.work)) {
    const Graph& next = *std::get<ChildNode>(work).graph;
    if (compare(session, *child->graph, next).why != Why::kNothing) {
      return refuse(Refusal::kInvalidValue);
    }
    assign_works(*child->graph, next);
    return {};
  }
  if (!can_become(session, copy.work, work)) return refuse(Refusal::kInvalidValue);
  copy.work = std::move(work);
  return {};
}

Allowed<void> set_enabled(ExecHandle exec, NodeHandle node, bool enabled) {
  return with_copy(exec, node, [&](Node& copy) -> Allowed<void> {
    const bool can = std::holds_alternative<KernelNode>(copy.work) ||
                     std::holds_alternative<CopyNode>(copy.work) ||
                     std::holds_alternative<FillNode>(copy.work);
    if (!can) return refuse(Refusal::kInvalidValue);
    copy.enabled = enabled;
    return {};
  });
}

Allowed<bool> is_enabled(ExecHandle exec, NodeHandle node) {
  return with_copy(exec, node, [](const Node& copy) -> Allowed<bool> { return copy.enabled; });
}

UpdateVerdict update_exec(Session& session, ExecHandle exec, GraphHandle graph) {
  const auto its = find_exec(exec);
  if (!its) return {Why::kError};
  const MutexLock running(its->running);
  const MutexLock lock(Graphs::get().mutex);
  const auto source = Graphs::get().find(graph);
  if (!source) return {Why::kError};
  const auto verdict = compare(session, *its->graph, *source);
  if (verdict.why == Why::kNothing) assign_works(*its->graph, *source);
  return verdict;
}

}  // namespace slate::client
