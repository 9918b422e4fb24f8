// Executable graphs: made, launched, changed.
#include "client/cudart/capture.h"
#include "client/cudart/graph.h"
#include "client/cudart/graph_params.h"

namespace slate::cudart {
namespace {

constexpr unsigned long long kInstantiateFlags =
    cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
    cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority;

Answer instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (exec == nullptr || (flags & ~kInstantiateFlags) != 0) return deny(cudaErrorInvalidValue);
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) {
    return std::unexpected<Failure>(
        Error{ErrorCode::kNotSupported, "graphs that kernels launch are not supported yet"});
  }
  const std::lock_guard lock(Graphs::get().mutex);
  const auto its = Graphs::get().find(graph);
  if (!its) return deny(cudaErrorInvalidValue);
  const bool once = its->has_memory_nodes();
  if (once && !its->instance.expired()) return deny(cudaErrorNotSupported);
  auto made = std::make_shared<Exec>();
  made->graph = its->clone(&made->copies);
  if (!made->graph->arrange()) return deny(cudaErrorInvalidValue);
  made->flags = flags;
  if (once) its->instance = made;
  *exec = Graphs::get().enter(std::move(made));
  return {};
}

std::shared_ptr<Exec> find_exec(cudaGraphExec_t exec) {
  const std::lock_guard lock(Graphs::get().mutex);
  return Graphs::get().find(exec);
}

cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const auto its = find_exec(exec);
    if (!its) return deny(cudaErrorInvalidValue);
    const std::lock_guard running(its->running);
    // A launch of a graph that is captured becomes a node with a copy of it.
    auto taken = capture_made(session, *id, [&]() -> Maybe<Work> {
      const std::lock_guard lock(Graphs::get().mutex);
      if (its->graph->has_memory_nodes()) return deny(cudaErrorNotSupported);
      return ChildNode{its->graph->clone(nullptr)};
    });
    if (taken) return *taken;
    // What an earlier launch allocated has to be freed, unless launches do that by themselves.
    const bool frees = (its->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
    for (const Node* node : its->graph->order()) {
      const auto* allocation = std::get_if<AllocateNode>(&node->work);
      if (allocation == nullptr || !allocation->memory->is_allocated()) continue;
      if (!frees) return deny(cudaErrorInvalidValue);
      allocation->memory->set_allocated(false);
    }
    if (auto ok = its->begin_launch(session, *id); !ok) return ok;
    auto done = run_graph(session, *its->graph, *id);
    const auto ended = its->end_launch(session, *id);
    return done ? ended : done;
  });
}

/// Calls `body` with the copy of `node` that is in an executable graph.
template <typename Body>
Answer with_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const Body& body) {
  const auto its = find_exec(exec);
  if (!its) return deny(cudaErrorInvalidValue);
  const std::lock_guard running(its->running);
  // The graph, and the node in it, have to be there still.
  const std::lock_guard lock(Graphs::get().mutex);
  if (Graphs::get().find(node) == nullptr) return deny(cudaErrorInvalidValue);
  const auto at = its->copies.find(reinterpret_cast<const Node*>(node));
  if (at == its->copies.end()) return deny(cudaErrorInvalidValue);
  return body(*at->second);
}

/// Why an executable graph cannot take over the work of `graph`.
cudaGraphExecUpdateResultInfo compare(Session& session, const Graph& mine, const Graph& other) {
  cudaGraphExecUpdateResultInfo info{};
  const auto refuse = [&](cudaGraphExecUpdateResult why, const Node* node, const Node* from) {
    info.result = why;
    info.errorNode = handle_of(node);
    info.errorFromNode = handle_of(from);
    return info;
  };
  if (mine.nodes().size() != other.nodes().size()) {
    return refuse(cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr);
  }
  std::map<const Node*, std::size_t> place;
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) place[mine.nodes()[i].get()] = i;
  for (std::size_t i = 0; i < other.nodes().size(); ++i) place[other.nodes()[i].get()] = i;
  for (std::size_t i = 0; i < mine.nodes().size(); ++i) {
    const Node& now = *mine.nodes()[i];
    const Node& next = *other.nodes()[i];
    if (now.work.index() != next.work.index()) {
      return refuse(cudaGraphExecUpdateErrorNodeTypeChanged, &next, nullptr);
    }
    if (now.before.size() != next.before.size()) {
      return refuse(cudaGraphExecUpdateErrorTopologyChanged, &next, nullptr);
    }
    for (std::size_t edge = 0; edge < now.before.size(); ++edge) {
      if (place[now.before[edge]] != place[next.before[edge]]) {
        return refuse(cudaGraphExecUpdateErrorTopologyChanged, &next, next.before[edge]);
      }
    }
    if (const auto* child = std::get_if<ChildNode>(&now.work)) {
      const auto inside = compare(session, *child->graph, *std::get<ChildNode>(next.work).graph);
      if (inside.result != cudaGraphExecUpdateSuccess) return inside;
    }
    if (!can_become(session, now.work, next.work)) {
      return refuse(cudaGraphExecUpdateErrorParametersChanged, &next, nullptr);
    }
  }
  return info;
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

/// Gives a node other work of its kind.
template <typename Make>
cudaError_t change(cudaGraphExec_t exec, cudaGraphNode_t node, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return with_copy(exec, node, [&](Node& copy) -> Answer {
      if (auto ok = take_over(session, copy.work, *work); !ok) return ok;
      if (const auto* child = std::get_if<ChildNode>(&copy.work)) {
        const Graph& next = *std::get<ChildNode>(*work).graph;
        if (compare(session, *child->graph, next).result != cudaGraphExecUpdateSuccess) {
          return deny(cudaErrorInvalidValue);
        }
        assign_works(*child->graph, next);
        return {};
      }
      if (!can_become(session, copy.work, *work)) return deny(cudaErrorInvalidValue);
      copy.work = std::move(*work);
      return {};
    });
  });
}

Answer update(Session& session, cudaGraphExec_t exec, cudaGraph_t graph,
              cudaGraphExecUpdateResultInfo* info) {
  if (info != nullptr) *info = {cudaGraphExecUpdateError, nullptr, nullptr};
  const auto its = find_exec(exec);
  if (!its) return deny(cudaErrorInvalidValue);
  const std::lock_guard running(its->running);
  const std::lock_guard lock(Graphs::get().mutex);
  const auto source = Graphs::get().find(graph);
  if (!source) return deny(cudaErrorInvalidValue);
  const auto verdict = compare(session, *its->graph, *source);
  if (info != nullptr) *info = verdict;
  if (verdict.result != cudaGraphExecUpdateSuccess) return deny(cudaErrorGraphExecUpdateFailure);
  assign_works(*its->graph, *source);
  return {};
}

}  // namespace

Exec::~Exec() {
  Session* const session = Process::get().current(its_session);
  if (launched == 0 || session == nullptr) return;
  (void)session->destroy_event(launched);  // fails only when the session has ended
}

Answer Exec::begin_launch(Session& session, std::uint64_t stream) {
  if (launched == 0 || its_session != session.serial()) {
    const auto event = session.create_event(ipc::kEventNoTiming);
    if (!event) return std::unexpected<Failure>(event.error());
    launched = *event;
    its_session = session.serial();
  } else if (stream != launched_in) {
    if (auto ok = session.wait(stream, launched); !ok) return std::unexpected<Failure>(ok.error());
  }
  return {};
}

Answer Exec::end_launch(Session& session, std::uint64_t stream) {
  launched_in = stream;
  if (auto ok = session.record(launched, stream); !ok) return std::unexpected<Failure>(ok.error());
  return {};
}

}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return with_session([&](Session&) { return instantiate(exec, graph, flags); });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return with_session([&](Session&) { return instantiate(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return with_session([&](Session&) -> Answer {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    params->errNode_out = nullptr;
    auto made = instantiate(exec, graph, params->flags);
    params->result_out = made ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
    return made;
  });
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* params) {
  return cudaGraphInstantiateWithParams(exec, graph, params);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return answer([&]() -> Answer {
    const std::lock_guard lock(Graphs::get().mutex);
    if (!Graphs::get().erase(exec)) return deny(cudaErrorInvalidValue);
    return {};
  });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return answer([&]() -> Answer {
    const auto its = find_exec(exec);
    if (!its || flags == nullptr) return deny(cudaErrorInvalidValue);
    *flags = its->flags;
    return {};
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return launch(exec, stream, DefaultStream::kLegacy);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return launch(exec, stream, DefaultStream::kPerThread);
}

/// Nothing is kept on the device, so there is nothing to bring there.
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, DefaultStream::kLegacy);
    if (!id) return std::unexpected(id.error());
    if (!find_exec(exec)) return deny(cudaErrorInvalidValue);
    return {};
  });
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return cudaGraphUpload(exec, stream);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return change(exec, node, maker(params));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return change(exec, node, maker(params));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes,
                                               cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = line_parms(to, from, bytes, kind);
  return change(exec, node, maker(&params));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return change(exec, node, maker(params));
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return change(exec, node, maker(params));
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return change(exec, node, child_maker(child));
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return change(exec, node, event_maker<RecordNode>(event));
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return change(exec, node, event_maker<WaitNode>(event));
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params) {
  return change(exec, node, any_maker(params));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return answer([&]() -> Answer {
    return with_copy(exec, node, [&](Node& copy) -> Answer {
      const bool can = std::holds_alternative<KernelNode>(copy.work) ||
                       std::holds_alternative<CopyNode>(copy.work) ||
                       std::holds_alternative<FillNode>(copy.work);
      if (!can) return deny(cudaErrorInvalidValue);
      copy.enabled = enabled != 0;
      return {};
    });
  });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return answer([&]() -> Answer {
    return with_copy(exec, node, [&](const Node& copy) -> Answer {
      if (enabled == nullptr) return deny(cudaErrorInvalidValue);
      *enabled = copy.enabled ? 1 : 0;
      return {};
    });
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return with_session([&](Session& session) { return update(session, exec, graph, info); });
}

}  // extern "C"
