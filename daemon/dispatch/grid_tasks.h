// A grid as the rewritten forms see it: blocks numbered from 0, and cut into tasks for workers.
// Pure arithmetic.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "injector/forms/launch_parameters.h"

namespace slate::daemon {

/// Whether the rewritten forms can number the grid's blocks: it has fewer than 2^31. CUDA allows
/// four billion times as many, but no known program launches them.
bool can_be_numbered(device::Dim3 grid);

/// Parameters that describe the grid; their other fields have the defaults. Requires:
/// can_be_numbered(grid).
injector::LaunchParameters parameters_of(device::Dim3 grid);

/// How the blocks of a grid are cut into tasks. Most tasks have `size` blocks. The last ones are
/// smaller, so that all workers end at about the same time.
struct TaskSizes {
  std::uint32_t size = 1;
  /// Blocks per worker that are kept for tasks of size / 4, and for single blocks.
  std::uint32_t quarter_blocks = 0;
  std::uint32_t single_blocks = 0;
};

/// The task sizes for tasks of `size` blocks. Requires: size > 0.
TaskSizes task_sizes(std::uint32_t size);
/// The sizes to try first: 12 rounds of tasks for every worker, with 1 to 16 blocks in a task.
TaskSizes default_task_sizes(std::uint64_t blocks, std::uint32_t workers);

/// Sets tasks_0 to tasks of `grid` for that many workers. Requires: workers > 0.
void cut_into_tasks(injector::LaunchParameters& grid, TaskSizes sizes, std::uint32_t workers);

}  // namespace slate::daemon
