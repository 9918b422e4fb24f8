// Occupancy of kernels, by NVIDIA's own calculator (cuda_occupancy.h). Pure functions, any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "base/device_info.h"
#include "client/session/kernels.h"

namespace slate::client {

/// Number of a kernel's blocks that an SM holds; 0 when no block fits. Requires: block_size > 0.
int active_blocks(const DeviceInfo& device, const Function& function, int block_size,
                  std::size_t dynamic_shared);

/// Bytes of dynamic shared memory for each block when `blocks` of them share an SM; nothing when so
/// many do not fit.
std::optional<std::size_t> available_dynamic_shared(const DeviceInfo& device,
                                                    const Function& function, int blocks,
                                                    int block_size);

struct BlockChoice {
  int blocks = 0;      // fewest blocks that fill the device
  int block_size = 0;  // threads
};
/// Bytes of dynamic shared memory that a block of this size needs.
using SharedOfBlock = std::size_t (*)(int block_size);
/// The block size of the highest occupancy. `shared_of` (null: the same for all sizes) comes before
/// `dynamic_shared`; `most`: the largest size, 0: no limit.
std::optional<BlockChoice> best_block_size(const DeviceInfo& device, const Function& function,
                                           SharedOfBlock shared_of, std::size_t dynamic_shared,
                                           int most);

}  // namespace slate::client
