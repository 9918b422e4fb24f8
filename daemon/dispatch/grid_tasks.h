// A grid as the rewritten forms see it: blocks in their order, numbered from 0, and cut into tasks
// for workers. Pure arithmetic.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "injector/forms/launch_parameters.h"

namespace slate::daemon {

/// Whether the rewritten forms can number its blocks: there are fewer than 2^31. All grids that
/// anyone launches in earnest are so; CUDA allows four billion times as many.
bool can_be_numbered(device::Dim3 grid);

/// Parameters with the fields that describe the grid; the others have their defaults.
/// Requires: can_be_numbered(grid).
injector::LaunchParameters parameters_of(device::Dim3 grid);

/// How the blocks of a grid are cut into tasks: most of them of `size` blocks, the last ones
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

/// Fills in tasks_0 to tasks for that many workers. Requires: workers > 0.
void cut_into_tasks(injector::LaunchParameters& grid, TaskSizes sizes, std::uint32_t workers);

}  // namespace slate::daemon
