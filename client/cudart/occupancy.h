// Number of a kernel's blocks that an SM holds, by NVIDIA's own calculator (cuda_occupancy.h).
#pragma once

#include "client/session/session.h"

namespace slate::cudart {

/// 0 when no block fits. Requires: block_size > 0.
int active_blocks(const DeviceInfo& device, const client::Function& function, int block_size,
                  std::size_t dynamic_shared);

}  // namespace slate::cudart
