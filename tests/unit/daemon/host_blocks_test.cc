#include "daemon/engine/host_blocks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

constexpr uid_t kSomebody = 65534;

class HostBlocksTest : public testing::Test {
 protected:
  ~HostBlocksTest() override {
    blocks_.release();
    EXPECT_TRUE(device_.holds_nothing());
  }
  ErrorCode allocate(HostBlocks& blocks, std::uint64_t id, std::uint64_t bytes) {
    const auto made = blocks.allocate(id, bytes, 0);
    return made ? ErrorCode::kNone : made.error().code;
  }

  FakeDevice device_;
  NamedBudget budget_{16 << 10};
  HostBlocks blocks_{device_, kSomebody, 1 << 30, budget_};
};

TEST_F(HostBlocksTest, MemoryWithANameIsBoundedForAllSessionsTogether) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives memory to another user";
  HostBlocks others(device_, kSomebody + 1, 1 << 30, budget_);
  ASSERT_EQ(allocate(blocks_, 1, 8192), ErrorCode::kNone);
  ASSERT_EQ(allocate(others, 1, 4096), ErrorCode::kNone);
  EXPECT_EQ(allocate(others, 2, 8192), ErrorCode::kOutOfMemory);
  const auto range = blocks_.retire(1);
  ASSERT_TRUE(range);
  EXPECT_EQ(allocate(others, 2, 8192), ErrorCode::kOutOfMemory) << "work may still use it";
  blocks_.finish_free(*range);
  EXPECT_EQ(allocate(others, 2, 8192), ErrorCode::kNone);
  others.release();
  EXPECT_EQ(allocate(blocks_, 2, 16 << 10), ErrorCode::kNone);
}

TEST_F(HostBlocksTest, MemoryOfTheEnginesUserHasNoNameAndIsNotCounted) {
  HostBlocks own(device_, ::geteuid(), 1 << 30, budget_);
  EXPECT_EQ(allocate(own, 1, 1 << 20), ErrorCode::kNone);
  own.release();
}

TEST_F(HostBlocksTest, OnlyWhatAClientCanCutOffTakesAGuard) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives memory to another user";
  static std::byte page[4096];
  std::vector<ipc::MappingGuard> guards;
  while (true) {
    auto guard = ipc::MappingGuard::make(page, sizeof(page));
    if (!guard) break;
    guards.push_back(std::move(*guard));
  }
  EXPECT_EQ(allocate(blocks_, 1, 4096), ErrorCode::kLimit);
  HostBlocks own(device_, ::geteuid(), 1 << 30, budget_);
  EXPECT_EQ(allocate(own, 1, 4096), ErrorCode::kNone);
  own.release();
  guards.pop_back();
  EXPECT_EQ(allocate(blocks_, 1, 4096), ErrorCode::kNone);
}

TEST(NamedBudgetTest, GuardsAreLeftForSegments) {
  NamedBudget budget;
  std::vector<NamedBudget::Part> parts;
  for (std::size_t i = 0; i < NamedBudget::kMostBlocks; ++i) parts.push_back(*budget.take(4096));
  EXPECT_EQ(budget.take(4096).error().code, ErrorCode::kLimit);
  parts.pop_back();
  EXPECT_TRUE(budget.take(4096));
}

TEST(NamedBudgetTest, RoomForStagingAndSegmentsIsLeft) {
  EXPECT_EQ(NamedBudget::bytes_for(64 << 20), 16u << 20);
  EXPECT_EQ(NamedBudget::bytes_for(64ull << 30), (64ull << 30) - (512 << 20) - (256 << 20));
  EXPECT_EQ(NamedBudget::bytes_for(0), 0u);
}

}  // namespace
}  // namespace slate::daemon
