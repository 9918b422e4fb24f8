#include "client/session/host_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <set>
#include <vector>

namespace slate::client {
namespace {

class HostPoolTest : public ::testing::Test {
 protected:
  ~HostPoolTest() override {
    for (const auto& [address, bytes] : slabs_) ::munmap(pointer(address), bytes);
  }
  static std::byte* pointer(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }
  std::uint64_t allocate(std::uint64_t bytes) {
    const auto address = pool_.allocate(bytes);
    EXPECT_TRUE(address);
    return address.value_or(0);
  }

  std::map<std::uint64_t, std::uint64_t> slabs_;
  std::uint64_t sent_ = 10, done_ = 10;
  bool refuses_ = false;
  HostPool pool_{
      {[this](std::uint64_t bytes) -> Result<std::uint64_t> {
         if (refuses_) return fail(ErrorCode::kOutOfMemory, "full");
         void* const slab =
             ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         const auto address = reinterpret_cast<std::uintptr_t>(slab);
         slabs_[address] = bytes;
         return address;
       },
       [this](std::uint64_t address) {
         ::munmap(pointer(address), slabs_.at(address));
         slabs_.erase(address);
       },
       [this] { return sent_; }, [this](std::uint64_t position) { return position <= done_; }}};
};

TEST_F(HostPoolTest, PiecesOfEverySizeAreApartAndAligned) {
  std::map<std::uint64_t, std::uint64_t> pieces;
  for (std::uint64_t bytes = 1; bytes <= HostPool::kLargest; bytes = bytes * 3 / 2 + 1) {
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t address = allocate(bytes);
      EXPECT_EQ(address % HostPool::kLeast, 0u);
      if (bytes >= 4096) {
        EXPECT_EQ(address % 4096, 0u) << bytes;
      }
      std::memset(pointer(address), 1, bytes);
      ASSERT_TRUE(pieces.emplace(address, bytes).second);
    }
  }
  ASSERT_NE(allocate(HostPool::kLargest), 0u);
  std::uint64_t end = 0;
  for (const auto& [address, bytes] : pieces) {
    EXPECT_GE(address, end);
    end = address + bytes;
  }
}

TEST_F(HostPoolTest, AFreedPieceComesAgainOnceTheWorkBeforeTheFreeIsDone) {
  const std::uint64_t first = allocate(600);
  sent_ = 20;  // work that uses it
  ASSERT_TRUE(pool_.free(first));
  sent_ = 30;
  for (int i = 0; i < 3; ++i) EXPECT_NE(allocate(600), first);
  done_ = 20;
  EXPECT_EQ(allocate(600), first);
}

TEST_F(HostPoolTest, APieceReadsAsZeroAgain) {
  const std::uint64_t first = allocate(5000);
  std::memset(pointer(first), 7, 8192);
  ASSERT_TRUE(pool_.free(first));
  ASSERT_EQ(allocate(5000), first);
  const std::vector<std::byte> zeros(8192);
  EXPECT_EQ(std::memcmp(pointer(first), zeros.data(), zeros.size()), 0);
}

TEST_F(HostPoolTest, OnlyTheBeginningOfAPieceInUseIsFreed) {
  const std::uint64_t piece = allocate(4096);
  EXPECT_FALSE(pool_.free(piece + 512));
  EXPECT_FALSE(pool_.free(0));
  EXPECT_TRUE(pool_.free(piece));
  EXPECT_FALSE(pool_.free(piece));
}

TEST_F(HostPoolTest, OfEachSizeOneEmptySlabStays) {
  std::vector<std::uint64_t> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(allocate(512));
  EXPECT_LT(slabs_.size(), 10u) << "they grow";
  for (const std::uint64_t piece : pieces) ASSERT_TRUE(pool_.free(piece));
  EXPECT_EQ(slabs_.size(), 1u);
  std::set<std::uint64_t> empty;
  pool_.for_each_empty([&](std::uint64_t address, std::uint64_t) { empty.insert(address); });
  EXPECT_EQ(empty, std::set{slabs_.begin()->first});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool_.free(allocate(512)));
  EXPECT_EQ(slabs_.size(), 1u);
}

TEST_F(HostPoolTest, AnAllocationFailsAsItsSlabDoes) {
  refuses_ = true;
  EXPECT_EQ(pool_.allocate(1).error().code, ErrorCode::kOutOfMemory);
  refuses_ = false;
  EXPECT_TRUE(pool_.allocate(1));
}

}  // namespace
}  // namespace slate::client
