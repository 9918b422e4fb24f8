#include "daemon/dispatch/grid_parts.h"

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {
namespace {

using injector::LaunchParameters;

constexpr std::uint32_t kRounds = 12;
constexpr std::uint32_t kLargestTask = 16;

LaunchParameters make_part(device::Dim3 grid, device::Dim3 origin, device::Dim3 extent) {
  LaunchParameters part{.extent_x = injector::make_divisor(extent.x),
                        .extent_y = injector::make_divisor(extent.y),
                        .origin = {origin.x, origin.y, origin.z},
                        .grid = {grid.x, grid.y, grid.z}};
  part.blocks = static_cast<std::uint32_t>(extent.count());
  return part;
}

}  // namespace

std::vector<LaunchParameters> split_grid(device::Dim3 grid, std::uint64_t most) {
  SLATE_CHECK(grid.count() > 0 && grid.x <= most);
  std::vector<LaunchParameters> parts;
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  if (plane <= most) {
    const auto planes = static_cast<std::uint32_t>(std::min<std::uint64_t>(most / plane, grid.z));
    for (std::uint32_t z = 0; z < grid.z; z += planes) {
      parts.push_back(make_part(grid, {0, 0, z}, {grid.x, grid.y, std::min(planes, grid.z - z)}));
    }
    return parts;
  }
  const auto rows = static_cast<std::uint32_t>(most / grid.x);
  for (std::uint32_t z = 0; z < grid.z; ++z) {
    for (std::uint32_t y = 0; y < grid.y; y += rows) {
      parts.push_back(make_part(grid, {0, y, z}, {grid.x, std::min(rows, grid.y - y), 1}));
    }
  }
  return parts;
}

TaskSizes task_sizes(std::uint32_t size) {
  return {.size = size, .quarter_blocks = size, .single_blocks = std::max(size / 4, 1u)};
}

TaskSizes default_task_sizes(std::uint64_t blocks, std::uint32_t workers) {
  const std::uint64_t size = blocks / (std::uint64_t{std::max(workers, 1u)} * kRounds);
  return task_sizes(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(size, 1, kLargestTask)));
}

void cut_into_tasks(LaunchParameters& part, TaskSizes sizes, std::uint32_t workers) {
  SLATE_CHECK(workers > 0);
  const std::uint32_t size = std::max(sizes.size, 1u);
  const std::uint32_t quarter = std::max(size / 4, 1u);
  const auto held_back = [&](std::uint32_t per_worker) {
    return std::min<std::uint64_t>(std::uint64_t{per_worker} * workers, part.blocks);
  };
  const std::uint64_t singles = held_back(sizes.single_blocks);
  const std::uint64_t quarters = std::min(held_back(sizes.quarter_blocks), part.blocks - singles);
  // What does not fill a task goes to the smaller ones.
  part.size_0 = size;
  part.tasks_0 = static_cast<std::uint32_t>((part.blocks - singles - quarters) / size);
  part.first_1 = part.tasks_0 * size;
  part.size_1 = quarter;
  part.tasks_1 = static_cast<std::uint32_t>((part.blocks - singles - part.first_1) / quarter);
  part.first_2 = part.first_1 + part.tasks_1 * quarter;
  part.tasks = part.tasks_0 + part.tasks_1 + (part.blocks - part.first_2);
}

}  // namespace slate::daemon
