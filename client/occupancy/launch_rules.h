// The checks that launches and the kernel nodes of graphs share, in both fronts. Any thread.
#pragma once

#include "client/session/graph_exec.h"
#include "client/session/graph_work.h"
#include "client/session/kernels.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// What CUDA refuses of cooperative and cluster launches at the call itself. Other launches pass.
Allowed<void> check_special(Session& session, const Function& function, const LaunchConfig& config);

/// Gives a node, or its copy in an executable graph, other work, which is checked as a launch is.
/// kInvalidValue when it is of another kind. Requires: `work` was made in this session.
Allowed<void> change_node(Session& session, NodeHandle node, Work work);
Allowed<void> change_copy(Session& session, ExecHandle exec, NodeHandle node, Work work);

}  // namespace slate::client
