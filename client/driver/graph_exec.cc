// Executable graphs: made, launched, changed.
#include "client/session/graph_exec.h"

#include "client/driver/graph_params.h"
#include "client/occupancy/launch_rules.h"

namespace slate::driver {
namespace {

static_assert(client::kInstantiateFreesOnLaunch ==
                  CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH &&
              client::kInstantiateUpload == CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD &&
              client::kInstantiateForKernels == CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH &&
              client::kInstantiateNodePriority == CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);

Answer instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if (exec == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  return client::hand_over(exec, client::instantiate(graph, flags));
}

/// With places for the node that was refused, and why. No such node is known.
CUresult instantiate_telling(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* text,
                             std::size_t bytes) noexcept {
  return with_session([&](Session&) -> Answer {
    if (node != nullptr) *node = nullptr;
    if (text != nullptr && bytes > 0) *text = '\0';
    return instantiate(exec, graph, 0);
  });
}

/// Gives a node other work of its kind.
template <typename Make>
CUresult change(CUgraphExec exec, CUgraphNode node, const Make& make) noexcept {
  return with_session([&](Session& session) -> Answer {
    Maybe<Work> work = make(session);
    if (!work) return std::unexpected(work.error());
    return client::change_copy(session, exec, node, std::move(*work));
  });
}

using Why = client::UpdateVerdict::Why;
static_assert(static_cast<int>(Why::kError) == CU_GRAPH_EXEC_UPDATE_ERROR &&
              static_cast<int>(Why::kTopology) == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED &&
              static_cast<int>(Why::kKind) == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED &&
              static_cast<int>(Why::kParameters) == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);

CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) noexcept {
  return with_session([&](Session& session) -> Answer {
    const auto verdict = client::update_exec(session, exec, graph);
    const CUgraphExecUpdateResult result = static_cast<CUgraphExecUpdateResult>(verdict.why);
    if (info != nullptr) {
      *info = {result, handle_of<CUgraphNode>(verdict.node), handle_of<CUgraphNode>(verdict.from)};
    }
    if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) return {};
    return deny(result == CU_GRAPH_EXEC_UPDATE_ERROR ? CUDA_ERROR_INVALID_VALUE
                                                     : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* text,
                            std::size_t bytes) {
  return instantiate_telling(exec, graph, node, text, bytes);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* text,
                               std::size_t bytes) {
  return instantiate_telling(exec, graph, node, text, bytes);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return with_session([&](Session&) { return instantiate(exec, graph, flags); });
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return with_session([&](Session& session) -> Answer {
    if (params == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    params->hErrNode_out = nullptr;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
      const auto id = stream_id(session, params->hUploadStream);
      if (!id) return std::unexpected(id.error());
    }
    auto made = instantiate(exec, graph, params->flags);
    if (made) params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return made;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return initialised([&]() -> Answer { return client::destroy_exec(exec); });
}
CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return initialised([&]() -> Answer {
    const auto its = client::find_exec(exec);
    if (!its) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(flags, its->flags);
  });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    return client::launch_graph(session, exec, *id);
  });
}
/// Nothing is kept on the device, so there is nothing to bring there.
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    if (!client::find_exec(exec)) return deny(CUDA_ERROR_INVALID_VALUE);
    return {};
  });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return change(exec, node, maker(params));
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return change(exec, node, maker(params));
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext context) {
  return change(exec, node, maker(params, context));
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params,
                                        CUcontext context) {
  return change(exec, node, maker(params, context));
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1* params) {
  return change(exec, node, maker(params));
}
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return change(exec, node, child_maker(child));
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change(exec, node, event_maker<client::RecordNode>(event));
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return change(exec, node, event_maker<client::WaitNode>(event));
}
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return change(exec, node, maker(params));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  return initialised([&]() -> Answer { return client::set_enabled(exec, node, enabled != 0); });
}
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  return initialised([&]() -> Answer { return give(enabled, client::is_enabled(exec, node)); });
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* node,
                           CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  const CUresult outcome = update(exec, graph, &info);
  if (node != nullptr) *node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return outcome;
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  return update(exec, graph, info);
}

}  // extern "C"
