// Executable graphs: made, launched, changed.
#include "client/session/graph_exec.h"

#include "client/cudart/graph_params.h"
#include "client/occupancy/launch_rules.h"

namespace slate::cudart {
namespace {

static_assert(client::kInstantiateFreesOnLaunch == cudaGraphInstantiateFlagAutoFreeOnLaunch &&
              client::kInstantiateUpload == cudaGraphInstantiateFlagUpload &&
              client::kInstantiateForKernels == cudaGraphInstantiateFlagDeviceLaunch &&
              client::kInstantiateNodePriority == cudaGraphInstantiateFlagUseNodePriority);

Answer instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (exec == nullptr) return deny(cudaErrorInvalidValue);
  return client::hand_over(exec, client::instantiate(graph, flags));
}

cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::launch_graph(session, exec, *id);
  });
}

/// Gives a node other work of its kind.
template <typename Make>
cudaError_t change(cudaGraphExec_t exec, cudaGraphNode_t node, const Make& make) {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::change_copy(session, exec, node, std::move(*work));
  });
}

using Why = client::UpdateVerdict::Why;
static_assert(static_cast<int>(Why::kError) == cudaGraphExecUpdateError &&
              static_cast<int>(Why::kTopology) == cudaGraphExecUpdateErrorTopologyChanged &&
              static_cast<int>(Why::kKind) == cudaGraphExecUpdateErrorNodeTypeChanged &&
              static_cast<int>(Why::kParameters) == cudaGraphExecUpdateErrorParametersChanged);

Answer update(Session& session, cudaGraphExec_t exec, cudaGraph_t graph,
              cudaGraphExecUpdateResultInfo* info) {
  const auto verdict = client::update_exec(session, exec, graph);
  const cudaGraphExecUpdateResult result = static_cast<cudaGraphExecUpdateResult>(verdict.why);
  if (info != nullptr) {
    *info = {result, handle_of<cudaGraphNode_t>(verdict.node),
             handle_of<cudaGraphNode_t>(verdict.from)};
  }
  if (result == cudaGraphExecUpdateSuccess) return {};
  return deny(result == cudaGraphExecUpdateError ? cudaErrorInvalidValue
                                                 : cudaErrorGraphExecUpdateFailure);
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

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
  return answer([&]() -> Answer { return client::destroy_exec(exec); });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return answer([&]() -> Answer {
    const auto its = client::find_exec(exec);
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
    if (!client::find_exec(exec)) return deny(cudaErrorInvalidValue);
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
  return change(exec, node, line_maker(to, from, bytes, kind));
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
  return change(exec, node, event_maker<client::RecordNode>(event));
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return change(exec, node, event_maker<client::WaitNode>(event));
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params) {
  return change(exec, node, maker(params));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return answer([&]() -> Answer { return client::set_enabled(exec, node, enabled != 0); });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return answer([&]() -> Answer { return give(enabled, client::is_enabled(exec, node)); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return with_session([&](Session& session) { return update(session, exec, graph, info); });
}

}  // extern "C"
