// Rows, estimates and groups of the profile table.
#include "scheduler/profile.h"

#include <gtest/gtest.h>

namespace slate::scheduler {
namespace {

KernelKey key(const char* name) {
  KernelKey made;
  made.name = name;
  return made;
}

TEST(ProfileTest, GridsOfOneBucketDifferByLessThanAFifth) {
  std::uint64_t first = 1;
  for (std::uint64_t blocks = 2; blocks < 200'000; ++blocks) {
    ASSERT_GE(grid_bucket(blocks), grid_bucket(blocks - 1));
    if (grid_bucket(blocks) != grid_bucket(first)) first = blocks;
    ASSERT_LT(static_cast<double>(blocks - first), 0.2 * static_cast<double>(first) + 1);
  }
  EXPECT_EQ(grid_bucket(0), grid_bucket(1));
  EXPECT_EQ(grid_bucket(1ULL << 40), 160U);
}

TEST(ProfileTest, OneOutlierMovesAnEstimateByLessThanASixth) {
  TimeEstimate time;
  for (int i = 0; i < 10; ++i) time.add(2.0);
  time.add(200.0);
  EXPECT_LT(time.ms, 2.4);
  time.add(0.01);
  EXPECT_GT(time.ms, 1.6);
}

TEST(ProfileTest, ALastingChangeIsFollowedWithinTwentyLaunches) {
  TimeEstimate time;
  for (int i = 0; i < 1000; ++i) time.add(1.0);
  for (int i = 0; i < 20; ++i) time.add(3.0);
  EXPECT_NEAR(time.ms, 3.0, 0.15);
}

TEST(ProfileTest, TheFirstLaunchOfAllMayBeSlow) {
  TimeEstimate time;
  time.add(50.0);
  time.add(1.0);
  EXPECT_DOUBLE_EQ(time.ms, 1.0);
}

TEST(ProfileTest, HoweverManyLaunchesMetTheSameThingTheyAreOneOutlier) {
  TimeEstimate time;
  for (int i = 0; i < 10; ++i) time.add(2.0);
  time.add(10.0, 100);
  EXPECT_LT(time.ms, 2.4);
  // But many that were quicker cannot be by chance.
  time.add(1.0, 8);
  EXPECT_LT(time.ms, 1.1);
  EXPECT_GE(time.ms, 1.0);
}

TEST(ProfileTest, TheFirstQuickLaunchesAreBelieved) {
  TimeEstimate time;
  time.add(0.2, 3);  // cold
  time.add(0.05);
  EXPECT_DOUBLE_EQ(time.ms, 0.05);
  EXPECT_DOUBLE_EQ(time.doubt(), 0);
}

TEST(ProfileTest, NonsenseIsNoMeasurement) {
  TimeEstimate time;
  time.add(0);
  time.add(-1);
  time.add(1, 0);
  EXPECT_FALSE(time.known());
}

TEST(ProfileTest, TheWorkerFormIsBestOnlyIfItGainsAHundredth) {
  KernelProfile profile;
  EXPECT_EQ(profile.best_form(), Form::kNative);
  profile.alone[1].add(1.0);
  EXPECT_EQ(profile.best_form(), Form::kWorker);
  profile.alone[0].add(1.005);
  EXPECT_EQ(profile.best_form(), Form::kNative);
  profile.alone[0] = {};
  profile.alone[0].add(1.02);
  EXPECT_EQ(profile.best_form(), Form::kWorker);
}

TEST(ProfileTest, IntensitiesAreFractionsOfThePeaks) {
  const Machine machine{.peak_gflops = 1000, .peak_gbytes = 100};
  ProfileTable table;
  const KernelId id = table.find_or_add(key("a"));
  KernelProfile& profile = table.kernel(id);
  EXPECT_FALSE(table.memory_intensity(id, machine));
  profile.bytes = 5e7;
  profile.flops = 2e8;
  EXPECT_FALSE(table.memory_intensity(id, machine));  // no time
  profile.alone[0].add(1.0);
  EXPECT_NEAR(*table.memory_intensity(id, machine), 0.5, 1e-9);
  EXPECT_NEAR(*table.compute_intensity(id, machine), 0.2, 1e-9);
  EXPECT_FALSE(table.memory_intensity(id, Machine{}));  // peaks unknown
  profile.memory_override = 0.9;
  EXPECT_NEAR(*table.memory_intensity(id, Machine{}), 0.9, 1e-9);
}

TEST(ProfileTest, AGridThatWasNotCountedTakesTheWorkOfTheMostSimilarOne) {
  const Machine machine{.peak_gflops = 1000, .peak_gbytes = 100};
  ProfileTable table;
  const auto add = [&](std::uint64_t blocks) {
    KernelKey of_grid = key("a");
    of_grid.grid_bucket = grid_bucket(blocks);
    const KernelId id = table.find_or_add(of_grid);
    table.kernel(id).blocks = blocks;
    return id;
  };
  const KernelId small = add(100), middle = add(10'000), large = add(40'000);
  table.kernel(small).bytes = 1e9;
  table.kernel(middle).bytes = 1e6;
  table.kernel(large).alone[0].add(1.0);
  EXPECT_NEAR(*table.memory_intensity(large, machine), 4e6 / 1e-3 / 100e9, 1e-9);
  EXPECT_FALSE(table.compute_intensity(large, machine));
}

TEST(ProfileTest, RowsAreFoundByWholeKey) {
  ProfileTable table;
  const KernelId a = table.find_or_add(key("a"));
  EXPECT_EQ(table.find_or_add(key("a")), a);
  KernelKey other = key("a");
  other.block[1] = 2;
  EXPECT_NE(table.find_or_add(other), a);
  EXPECT_FALSE(table.find(key("b")));
  EXPECT_EQ(table.size(), 2U);
}

TEST(ProfileTest, ForgettingAKernelTakesItsGroupsAlong) {
  ProfileTable table;
  const KernelId a = table.find_or_add(key("a")), b = table.find_or_add(key("b"));
  table.kernel(a).alone[0].add(1.0);
  table.kernel(a).memory_override = 0.5;
  table.kernel(b).alone[0].add(2.0);
  GroupProfile both, single;
  both.kernels = {a, b};
  single.kernels = {b, b};
  table.set_group(both);
  table.set_group(single);
  table.forget(a);
  EXPECT_EQ(table.group({a, b}), nullptr);
  ASSERT_NE(table.group({b, b}), nullptr);
  EXPECT_FALSE(table.kernel(a).best_alone().known());
  EXPECT_TRUE(table.kernel(a).memory_override.has_value());
  EXPECT_EQ(table.find(key("a")), a);
  table.clear();
  EXPECT_TRUE(table.groups().empty());
  EXPECT_FALSE(table.kernel(b).best_alone().known());
  EXPECT_EQ(table.find(key("b")), b);
}

KernelKey grid(const std::string& name, std::uint32_t bucket) {
  return {.code = 1, .name = name, .block = {32, 1, 1}, .grid_bucket = bucket};
}

TEST(FamilyTest, GridsOfOneKernelAndBlockShapeAreAFamily) {
  ProfileTable table;
  const KernelId large = table.find_or_add(grid("a", 40));
  const KernelId other = table.find_or_add(grid("b", 40));
  const KernelId small = table.find_or_add(grid("a", 20));
  EXPECT_EQ(table.family(small), large);
  EXPECT_EQ(table.family(large), large);
  EXPECT_EQ(table.family(other), other);
  EXPECT_EQ(table.rows_of_family(small).size(), 2u);
}

TEST(FamilyTest, AnUnmeasuredGridIsEstimatedFromTheMostSimilarOne) {
  ProfileTable table;
  const KernelId far = table.find_or_add(grid("a", 40));
  const KernelId near = table.find_or_add(grid("a", 24));
  const KernelId asked = table.find_or_add(grid("a", 20));
  table.kernel(far).blocks = 1024;
  table.kernel(near).blocks = 64;
  table.kernel(asked).blocks = 32;
  EXPECT_FALSE(table.alone(asked));
  table.kernel(far).alone[0].add(8);
  EXPECT_DOUBLE_EQ(table.alone(asked)->count(), 8.0 * 32 / 1024);
  table.kernel(near).alone[0].add(1);
  EXPECT_DOUBLE_EQ(table.alone(asked)->count(), 0.5);
  table.kernel(asked).alone[0].add(3);
  EXPECT_DOUBLE_EQ(table.alone(asked)->count(), 3);
}

TEST(FamilyTest, GroupsAreOfFamilies) {
  ProfileTable table;
  const KernelId a = table.find_or_add(grid("a", 40));
  const KernelId b = table.find_or_add(grid("b", 40));
  const KernelId small_b = table.find_or_add(grid("b", 20));
  table.set_group({.kernels = {small_b, a},
                   .sharing = Sharing::kPlaced,
                   .forms = {Form::kWorker, Form::kNative},
                   .placements = {{.first = 0, .count = 5}, {.first = 5, .count = 2}},
                   .makespan = 0.5,
                   .samples = 1});
  const GroupProfile* const group = table.group({a, b});
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->forms, (std::vector{Form::kNative, Form::kWorker}));
  EXPECT_EQ(group->placements[0].count, 2u);
}

}  // namespace
}  // namespace slate::scheduler
