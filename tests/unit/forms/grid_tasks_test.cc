#include "daemon/dispatch/grid_tasks.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

namespace slate::daemon {
namespace {

using injector::LaunchParameters;
using Index = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

/// The index in the grid of block `number`, as the rewritten kernel computes it.
Index index_of(const LaunchParameters& grid, std::uint32_t number) {
  const auto divide = [](std::uint32_t dividend, const injector::Divisor& divisor) {
    return static_cast<std::uint32_t>((std::uint64_t{dividend} * divisor.magic) >> divisor.shift);
  };
  const std::uint32_t row = divide(number, grid.extent_x);
  const std::uint32_t plane = divide(row, grid.extent_y);
  return {number - row * grid.extent_x.value, row - plane * grid.extent_y.value, plane};
}

TEST(GridTasksTest, EveryBlockHasItsNumber) {
  std::mt19937 generator(2);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 300; ++round) {
    const device::Dim3 grid{1 + random() % 20, 1 + random() % 20, 1 + random() % 20};
    const LaunchParameters parameters = parameters_of(grid);
    ASSERT_EQ(parameters.blocks, grid.count());
    std::uint32_t number = 0;
    for (std::uint32_t z = 0; z < grid.z; ++z) {
      for (std::uint32_t y = 0; y < grid.y; ++y) {
        for (std::uint32_t x = 0; x < grid.x; ++x)
          ASSERT_EQ(index_of(parameters, number++), Index(x, y, z));
      }
    }
  }
  const LaunchParameters most = parameters_of({65'538, 32'767, 1});
  EXPECT_EQ(index_of(most, most.blocks - 1), Index(65'537, 32'766, 0));
}

TEST(GridTasksTest, FewerThanTwoToThe31BlocksCanBeNumbered) {
  constexpr std::uint32_t kMost = (std::uint32_t{1} << 31) - 1;
  EXPECT_TRUE(can_be_numbered({kMost, 1, 1}));
  EXPECT_TRUE(can_be_numbered({1, 65'535, 32'768}));
  EXPECT_FALSE(can_be_numbered({1u << 31, 1, 1}));
  EXPECT_FALSE(can_be_numbered({1u << 16, 1u << 15, 1}));
  EXPECT_FALSE(can_be_numbered({kMost, 65'535, 65'535}));
  EXPECT_FALSE(can_be_numbered({0, 1, 1}));
  EXPECT_FALSE(can_be_numbered({1u << 31, 1u << 31, 4})) << "2^64";
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

TEST(GridTasksTest, TasksHoldEveryBlockOnceAndInOrder) {
  std::mt19937 generator(3);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int round = 0; round < 2000; ++round) {
    LaunchParameters grid = parameters_of({1 + random() % 5000, 1, 1});
    const TaskSizes sizes{random() % 40, random() % 40, random() % 40};
    cut_into_tasks(grid, sizes, 1 + random() % 300);
    std::uint32_t next = 0;
    for (std::uint32_t task = 0; task < grid.tasks; ++task) {
      const auto [first, end] = blocks_of(grid, task);
      ASSERT_EQ(first, next);
      ASSERT_GT(end, first);
      next = end;
    }
    ASSERT_EQ(next, grid.blocks);
  }
}

TEST(GridTasksTest, ManySmallBlocksGetLargeTasksAndFewBlocksSingleOnes) {
  EXPECT_EQ(default_task_sizes(4'000'000, 2000).size, 16u);
  EXPECT_EQ(default_task_sizes(100'000, 2000).size, 4u);
  EXPECT_EQ(default_task_sizes(3000, 2000).size, 1u);
}

}  // namespace
}  // namespace slate::daemon
