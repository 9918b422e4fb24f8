// A grid as the rewritten forms see it: in parts of fewer than 2^31 blocks, each a box of whole
// rows or planes, in rising order of blocks. One part for any grid that anyone launches in earnest.
// Pure arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "injector/forms/launch_parameters.h"

namespace slate::daemon {

inline constexpr std::uint64_t kMostPartBlocks = (std::uint64_t{1} << 31) - 1;

/// Parameters with the fields that place a part in its grid; the others have their defaults.
/// Requires: no dimension of the grid is 0, grid.x <= most.
std::vector<injector::LaunchParameters> split_grid(device::Dim3 grid,
                                                   std::uint64_t most = kMostPartBlocks);

/// How the blocks of a part are cut into tasks: most of them of `size` blocks, the last ones
/// smaller, so that all workers end at about the same time.
struct TaskSizes {
  std::uint32_t size = 1;
  /// Blocks per worker that are held back for tasks of size / 4, and for single blocks.
  std::uint32_t quarter_blocks = 0;
  std::uint32_t single_blocks = 0;
};

/// Tasks of `size` blocks, and what goes with that. Requires: size > 0.
TaskSizes task_sizes(std::uint32_t size);
/// The sizes that are tried first: 12 rounds of tasks for every worker, but 1 to 16 blocks a task.
TaskSizes default_task_sizes(std::uint64_t blocks, std::uint32_t workers);

/// Fills in tasks_0 to tasks of `part` for that many workers. Requires: workers > 0.
void cut_into_tasks(injector::LaunchParameters& part, TaskSizes sizes, std::uint32_t workers);

}  // namespace slate::daemon
