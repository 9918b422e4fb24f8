// The checks that launches and the kernel nodes of graphs share, in both fronts. Any thread.
#pragma once

#include "client/session/kernels.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// What CUDA refuses of cooperative and cluster launches at the call itself. Other launches pass.
Allowed<void> check_special(Session& session, const Function& function, const LaunchConfig& config);

}  // namespace slate::client
