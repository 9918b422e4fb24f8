// The checks that launches and the kernel nodes of graphs share.
#pragma once

#include "client/cudart/front.h"

namespace slate::cudart {

/// What CUDA refuses of cooperative and cluster launches at the call itself. Other launches pass.
Answer check_special(Session& session, const client::Function& function,
                     const client::LaunchConfig& config);

}  // namespace slate::cudart
