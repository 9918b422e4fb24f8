#include "client/session/managed_memory.h"

#include <gtest/gtest.h>

#include <set>

namespace slate::client {
namespace {

class ManagedMemoryTest : public ::testing::Test {
 protected:
  std::map<std::uint64_t, std::uint64_t> blocks_;
  std::uint64_t next_ = 1ull << 40;
  bool refuses_ = false;
  ManagedMemory memory_{[this](std::uint64_t bytes) -> Result<std::uint64_t> {
                          if (refuses_) return fail(ErrorCode::kOutOfMemory, "full");
                          blocks_[next_] = bytes;
                          return std::exchange(next_, next_ + bytes);
                        },
                        [this](std::uint64_t address) -> Result<void> {
                          EXPECT_EQ(blocks_.erase(address), 1u);
                          return {};
                        }};
};

TEST_F(ManagedMemoryTest, SmallPiecesShareABlockAndDoNotOverlap) {
  std::set<std::uint64_t> addresses;
  for (int i = 0; i < 4096; ++i) {
    const auto address = memory_.allocate(500);
    ASSERT_TRUE(address);
    EXPECT_EQ(*address % ManagedMemory::kAlign, 0u);
    EXPECT_TRUE(addresses.insert(*address).second);
  }
  EXPECT_EQ(blocks_.size(), 1u);
  ASSERT_TRUE(memory_.allocate(1));
  EXPECT_EQ(blocks_.size(), 2u);
  for (const std::uint64_t address : addresses) ASSERT_TRUE(memory_.free(address));
  EXPECT_EQ(blocks_.size(), 1u) << "the empty one was given back";
}

TEST_F(ManagedMemoryTest, FreedNeighboursAreOneHoleAgain) {
  const auto first = memory_.allocate(100 << 10), second = memory_.allocate(100 << 10);
  ASSERT_TRUE(memory_.allocate(512));
  ASSERT_TRUE(memory_.free(*second) && memory_.free(*first));
  EXPECT_EQ(*memory_.allocate(200 << 10), *first);
  EXPECT_EQ(blocks_.size(), 1u);
}

TEST_F(ManagedMemoryTest, LargePiecesHaveABlockOfWholePagesEach) {
  const auto address = memory_.allocate((1 << 20) + 1);
  ASSERT_TRUE(address);
  EXPECT_EQ(blocks_.at(*address), (1u << 20) + 4096);
  EXPECT_TRUE(memory_.free(*address));
  EXPECT_TRUE(blocks_.empty());
}

TEST_F(ManagedMemoryTest, OnlyTheBeginningOfAPieceIsFreed) {
  const auto address = memory_.allocate(4096);
  EXPECT_EQ(memory_.free(*address + 512).error().code, ErrorCode::kInvalidValue);
  EXPECT_TRUE(memory_.free(*address));
  EXPECT_EQ(memory_.free(*address).error().code, ErrorCode::kInvalidValue);
}

TEST_F(ManagedMemoryTest, WantOfMemoryIsTold) {
  EXPECT_EQ(memory_.allocate(~0ull).error().code, ErrorCode::kOutOfMemory);
  refuses_ = true;
  EXPECT_EQ(memory_.allocate(1).error().code, ErrorCode::kOutOfMemory);
  refuses_ = false;
  EXPECT_TRUE(memory_.allocate(1));
}

}  // namespace
}  // namespace slate::client
