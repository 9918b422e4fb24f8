#include "daemon/engine/host_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

class HostBlocksTest : public testing::Test {
 protected:
  ~HostBlocksTest() override {
    blocks_.release();
    EXPECT_TRUE(device_.holds_nothing());
  }
  static ErrorCode allocate(HostBlocks& blocks, std::uint64_t id, std::uint64_t bytes) {
    const auto made = blocks.allocate(id, bytes, 0);
    return made ? ErrorCode::kNone : made.error().code;
  }
  HostBlocks::Send send() {
    return [this](std::uint64_t id, int memory) -> Result<void> {
      EXPECT_GE(memory, 0);
      if (full_) return fail(ErrorCode::kIo, "no room");
      sent_.push_back(id);
      return {};
    };
  }

  FakeDevice device_;
  bool full_ = false;
  std::vector<std::uint64_t> sent_;
  MemoryLedger ledger_{16 << 10, 0};
  MemoryLedger::Account account_{ledger_, 1000};
  HostBlocks blocks_{device_, 1 << 30, &account_, send()};
};

TEST_F(HostBlocksTest, MemoryIsBoundedForAllSessionsTogether) {
  HostBlocks others(device_, 1 << 30, &account_, send());
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

TEST_F(HostBlocksTest, ABlockThatCannotBeSentIsNone) {
  full_ = true;
  EXPECT_EQ(allocate(blocks_, 1, 16 << 10), ErrorCode::kIo);
  EXPECT_TRUE(device_.holds_nothing());
  full_ = false;
  EXPECT_EQ(allocate(blocks_, 1, 16 << 10), ErrorCode::kNone) << "its part was given back";
  EXPECT_EQ(sent_, std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace slate::daemon
