#include "daemon/dispatch/grid_tasks.h"

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {
namespace {

using injector::LaunchParameters;

constexpr std::uint32_t kRounds = 12;
constexpr std::uint32_t kLargestTask = 16;

constexpr std::uint64_t kMostBlocks = (std::uint64_t{1} << 31) - 1;

}  // namespace

bool can_be_numbered(device::Dim3 grid) {
  // Their product may not fit into 64 bits.
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  return plane <= kMostBlocks && grid.z <= kMostBlocks / plane;
}

LaunchParameters parameters_of(device::Dim3 grid) {
  SLATE_CHECK(can_be_numbered(grid));
  LaunchParameters parameters{.extent_x = injector::make_divisor(grid.x),
                              .extent_y = injector::make_divisor(grid.y),
                              .extent_z = grid.z};
  parameters.blocks = static_cast<std::uint32_t>(grid.count());
  return parameters;
}

TaskSizes task_sizes(std::uint32_t size) {
  return {.size = size, .quarter_blocks = size, .single_blocks = std::max(size / 4, 1u)};
}

TaskSizes default_task_sizes(std::uint64_t blocks, std::uint32_t workers) {
  const std::uint64_t size = blocks / (std::uint64_t{std::max(workers, 1u)} * kRounds);
  return task_sizes(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(size, 1, kLargestTask)));
}

void cut_into_tasks(LaunchParameters& grid, TaskSizes sizes, std::uint32_t workers) {
  SLATE_CHECK(workers > 0);
  const std::uint32_t size = std::max(sizes.size, 1u);
  const std::uint32_t quarter = std::max(size / 4, 1u);
  const auto held_back = [&](std::uint32_t per_worker) {
    return std::min<std::uint64_t>(std::uint64_t{per_worker} * workers, grid.blocks);
  };
  const std::uint64_t singles = held_back(sizes.single_blocks);
  const std::uint64_t quarters = std::min(held_back(sizes.quarter_blocks), grid.blocks - singles);
  // What does not fill a task goes to the smaller ones.
  grid.size_0 = size;
  grid.tasks_0 = static_cast<std::uint32_t>((grid.blocks - singles - quarters) / size);
  grid.first_1 = grid.tasks_0 * size;
  grid.size_1 = quarter;
  grid.tasks_1 = static_cast<std::uint32_t>((grid.blocks - singles - grid.first_1) / quarter);
  grid.first_2 = grid.first_1 + grid.tasks_1 * quarter;
  grid.tasks = grid.tasks_0 + grid.tasks_1 + (grid.blocks - grid.first_2);
}

}  // namespace slate::daemon
