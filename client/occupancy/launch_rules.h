// The checks that launches and the kernel nodes of graphs share, in both fronts. Any thread.
#pragma once

#include "client/session/graph_work.h"
#include "client/session/kernels.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// What CUDA refuses of cooperative and cluster launches at the call itself. Other launches pass.
Allowed<void> check_special(Session& session, const Function& function, const LaunchConfig& config);

/// Prepares `work` to replace a node's. kInvalidValue when it is of another kind. Requires: `work`
/// was made in this session.
Allowed<void> take_over(Session& session, const Work& old, Work& work);

}  // namespace slate::client
