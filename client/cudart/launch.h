// What launches and the kernel nodes of graphs are both checked for.
#pragma once

#include "client/cudart/front.h"

namespace slate::cudart {

/// What CUDA refuses of cooperative and cluster launches at the call itself. Others pass.
Answer check_special(Session& session, const client::Function& function,
                     const client::LaunchConfig& config);

}  // namespace slate::cudart
