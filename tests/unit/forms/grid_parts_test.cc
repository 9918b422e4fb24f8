#include "daemon/dispatch/grid_parts.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace slate::daemon {
namespace {

using injector::LaunchParameters;
using Index = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

/// The index in the grid of block `number` of a part, as the rewritten kernel computes it.
Index index_of(const LaunchParameters& part, std::uint32_t number) {
  const auto divide = [](std::uint32_t dividend, const injector::Divisor& divisor) {
    return static_cast<std::uint32_t>((std::uint64_t{dividend} * divisor.magic) >> divisor.shift);
  };
  const std::uint32_t row = divide(number, part.extent_x);
  const std::uint32_t plane = divide(row, part.extent_y);
  return {number - row * part.extent_x.value + part.origin[0],
          row - plane * part.extent_y.value + part.origin[1], plane + part.origin[2]};
}

TEST(GridPartsTest, PartsHoldEveryBlockOnceAndInOrder) {
  std::mt19937 generator(2);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 300; ++round) {
    const device::Dim3 grid{1 + random() % 20, 1 + random() % 20, 1 + random() % 20};
    const std::uint64_t most = grid.x + random() % 500;
    std::vector<Index> seen;
    for (const LaunchParameters& part : split_grid(grid, most)) {
      ASSERT_LE(part.blocks, most);
      EXPECT_EQ(part.grid[0], grid.x);
      for (std::uint32_t i = 0; i < part.blocks; ++i) seen.push_back(index_of(part, i));
    }
    std::vector<Index> expected;
    for (std::uint32_t z = 0; z < grid.z; ++z) {
      for (std::uint32_t y = 0; y < grid.y; ++y) {
        for (std::uint32_t x = 0; x < grid.x; ++x) expected.emplace_back(x, y, z);
      }
    }
    ASSERT_EQ(seen, expected);
  }
}

TEST(GridPartsTest, AGridOfMoreThanTwoToThe32BlocksIsSplit) {
  const device::Dim3 grid{70'000, 65'535, 2};
  const auto parts = split_grid(grid);
  std::uint64_t blocks = 0;
  for (const LaunchParameters& part : parts) blocks += part.blocks;
  EXPECT_EQ(blocks, grid.count());
  EXPECT_GT(parts.size(), 4u);
  EXPECT_EQ(index_of(parts.back(), parts.back().blocks - 1), Index(69'999, 65'534, 1));
}

/// First block and end of a task, as the worker's leader computes them.
std::pair<std::uint32_t, std::uint32_t> blocks_of(const LaunchParameters& part,
                                                  std::uint32_t task) {
  if (task < part.tasks_0) return {task * part.size_0, (task + 1) * part.size_0};
  task -= part.tasks_0;
  if (task < part.tasks_1) {
    const std::uint32_t first = part.first_1 + task * part.size_1;
    return {first, first + part.size_1};
  }
  const std::uint32_t first = part.first_2 + task - part.tasks_1;
  return {first, first + 1};
}

TEST(GridPartsTest, TasksHoldEveryBlockOnceAndInOrder) {
  std::mt19937 generator(3);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 2000; ++round) {
    LaunchParameters part = split_grid({1 + random() % 5000, 1, 1}).front();
    const TaskSizes sizes{random() % 40, random() % 40, random() % 40};
    cut_into_tasks(part, sizes, 1 + random() % 300);
    std::uint32_t next = 0;
    for (std::uint32_t task = 0; task < part.tasks; ++task) {
      const auto [first, end] = blocks_of(part, task);
      ASSERT_EQ(first, next);
      ASSERT_GT(end, first);
      next = end;
    }
    ASSERT_EQ(next, part.blocks);
  }
}

TEST(GridPartsTest, ManySmallBlocksGetLargeTasksAndFewBlocksSingleOnes) {
  EXPECT_EQ(default_task_sizes(4'000'000, 2000).size, 16u);
  EXPECT_EQ(default_task_sizes(100'000, 2000).size, 4u);
  EXPECT_EQ(default_task_sizes(3000, 2000).size, 1u);
}

}  // namespace
}  // namespace slate::daemon
