#include "device/sim/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace slate::sim {
namespace {

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Memory::make(4 * kChunkBytes);
    ASSERT_TRUE(made) << made.error().message;
    memory_ = std::move(*made);
  }

  device::AddressRange reserve(std::uint64_t chunks) {
    const auto base = memory_->reserve(chunks * kChunkBytes);
    EXPECT_TRUE(base);
    return {base.value_or(0), chunks * kChunkBytes};
  }

  static unsigned char* bytes(device::Address address) {
    return reinterpret_cast<unsigned char*>(address);
  }

  std::unique_ptr<Memory> memory_;
};

TEST_F(MemoryTest, CapacityMustBeWholeChunks) {
  EXPECT_EQ(Memory::make(0).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(Memory::make(kChunkBytes + 1).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryTest, MappedMemoryReadsAsZeroAlsoTheSecondTime) {
  const auto range = reserve(1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(memory_->map(range));
    for (std::uint64_t i = 0; i < kChunkBytes; i += 4096) ASSERT_EQ(*bytes(range.base + i), 0);
    std::memset(bytes(range.base), 0xff, kChunkBytes);
    ASSERT_TRUE(memory_->unmap(range));
  }
}

TEST_F(MemoryTest, MemoryMappedAgainIsTheSameUntilItsLastMappingGoes) {
  const auto range = reserve(8);
  const auto part = [&](std::uint64_t chunk) {
    return device::AddressRange{range.base + chunk * kChunkBytes, kChunkBytes};
  };
  ASSERT_TRUE(memory_->map(part(0)));
  *bytes(part(0).base) = 1;
  ASSERT_TRUE(memory_->map_again(part(2), part(0).base));
  ASSERT_TRUE(memory_->map_again(part(4), part(2).base));
  EXPECT_EQ(*bytes(part(4).base), 1);
  *bytes(part(4).base) = 2;
  EXPECT_EQ(*bytes(part(0).base), 2);
  EXPECT_EQ(memory_->mapped_bytes(), kChunkBytes);
  ASSERT_TRUE(memory_->unmap(part(0)));
  EXPECT_EQ(*bytes(part(2).base), 2);
  EXPECT_FALSE(memory_->is_mapped(part(0).base, 1));
  ASSERT_TRUE(memory_->map(part(0)));
  EXPECT_EQ(*bytes(part(0).base), 0) << "new memory";
  ASSERT_TRUE(memory_->unmap(part(2)));
  EXPECT_EQ(memory_->mapped_bytes(), 2 * kChunkBytes);
  ASSERT_TRUE(memory_->unmap(part(4)));
  EXPECT_EQ(memory_->mapped_bytes(), kChunkBytes);
}

TEST_F(MemoryTest, ExportedMemoryOutlivesItsMappingAndItsDevice) {
  const auto range = reserve(1);
  ASSERT_TRUE(memory_->map(range));
  std::memset(bytes(range.base), 7, kChunkBytes);
  const auto exported = memory_->export_memory(range);
  ASSERT_TRUE(exported) << exported.error().message;
  memory_.reset();
  const auto next = *Memory::make(64 * kChunkBytes);
  const device::AddressRange again{*next->reserve(kChunkBytes, range.base), kChunkBytes};
  EXPECT_EQ(again.base, range.base) << "the addresses are free in another process, too";
  ASSERT_TRUE(next->map_exported(again, exported->get()));
  EXPECT_EQ(next->mapped_bytes(), kChunkBytes);
  for (std::uint64_t i = 0; i < kChunkBytes; i += 4096) ASSERT_EQ(*bytes(again.base + i), 7);
  ASSERT_TRUE(next->unmap(again));
  const device::AddressRange two{*next->reserve(2 * kChunkBytes), 2 * kChunkBytes};
  EXPECT_EQ(next->map_exported(two, exported->get()).error().code, ErrorCode::kInvalidValue)
      << "it has another size";
}

TEST_F(MemoryTest, EachSessionHasAWindowOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  constexpr std::uint64_t kSessions = 8;  // it leaves a small space
#else
  constexpr std::uint64_t kSessions = 100;
#endif
  for (std::uint64_t session = 1; session <= kSessions; ++session) {
    const auto window = memory_->window_of(session, 64 * kChunkBytes);
    const auto [base, bytes] = window.reservation;
    if (base == 0) GTEST_SKIP() << "the space is small";
    EXPECT_GE(bytes, 256 * kChunkBytes);
    EXPECT_EQ(memory_->reserve(bytes, base).value(), base) << session;
    EXPECT_EQ(memory_->reserve(kChunkBytes, window.host).value(), window.host) << session;
  }
}

TEST_F(MemoryTest, OnlyWhatIsMappedCanBeMappedAgainAndOnlyWhereNothingIs) {
  const auto range = reserve(4);
  const device::AddressRange first{range.base, kChunkBytes};
  const device::AddressRange second{range.base + kChunkBytes, kChunkBytes};
  EXPECT_EQ(memory_->map_again(second, first.base).error().code, ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory_->map(first));
  EXPECT_EQ(memory_->map_again(first, first.base).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(memory_->map_again({second.base, 2 * kChunkBytes}, first.base).error().code,
            ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory_->map_again(second, first.base));
  memory_->unreserve(range);
  EXPECT_EQ(memory_->mapped_bytes(), 0u);
}

TEST_F(MemoryTest, ReservingTakesNoMemoryMappingDoes) {
  const auto range = reserve(100);
  EXPECT_EQ(memory_->mapped_bytes(), 0u);
  ASSERT_TRUE(memory_->map({range.base + kChunkBytes, 3 * kChunkBytes}));
  EXPECT_EQ(memory_->mapped_bytes(), 3 * kChunkBytes);
  EXPECT_EQ(memory_->map({range.base + 10 * kChunkBytes, 2 * kChunkBytes}).error().code,
            ErrorCode::kOutOfMemory);
  EXPECT_TRUE(memory_->map({range.base + 10 * kChunkBytes, kChunkBytes}));
}

TEST_F(MemoryTest, OnlyWholeUnmappedChunksOfOneReservationCanBeMapped) {
  const auto range = reserve(2);
  const auto code = [this](device::Address base, std::uint64_t size) {
    return memory_->map({base, size}).error().code;
  };
  EXPECT_EQ(code(range.base + 4096, kChunkBytes), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(range.base, 4096), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(range.base, 0), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(range.base + kChunkBytes, 2 * kChunkBytes), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(range.base, ~std::uint64_t{0} / kChunkBytes * kChunkBytes),
            ErrorCode::kInvalidValue);
  ASSERT_TRUE(memory_->map({range.base, kChunkBytes}));
  EXPECT_EQ(code(range.base, 2 * kChunkBytes), ErrorCode::kInvalidValue);
}

TEST_F(MemoryTest, OnlyWhatWasMappedAsOneIsUnmapped) {
  const auto range = reserve(2);
  ASSERT_TRUE(memory_->map(range));
  EXPECT_EQ(memory_->unmap({range.base, kChunkBytes}).error().code, ErrorCode::kInvalidValue);
  EXPECT_TRUE(memory_->unmap(range));
  EXPECT_EQ(memory_->unmap(range).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryTest, UnreservingGivesMemoryAndAddressesBack) {
  const auto first = reserve(2);
  const auto second = reserve(1);
  EXPECT_FALSE(first.contains(second.base, 1));
  ASSERT_TRUE(memory_->map(first));
  memory_->unreserve(first);
  EXPECT_EQ(memory_->mapped_bytes(), 0u);
  EXPECT_FALSE(memory_->is_mapped(first.base, 1));
  EXPECT_EQ(reserve(2).base, first.base);
}

TEST_F(MemoryTest, AddressSpaceIsFinite) {
  EXPECT_EQ(memory_->reserve(1ull << 60).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(memory_->reserve(kChunkBytes / 2).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryTest, ViewAllowsTheMappedPartOfItsArenaOnly) {
  const auto mine = reserve(3);
  const auto other = reserve(1);
  ASSERT_TRUE(memory_->map({mine.base + kChunkBytes, kChunkBytes}));
  ASSERT_TRUE(memory_->map(other));
  const auto view = memory_->view(mine);
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->allows(mine.base, 4));
  EXPECT_TRUE(view->allows(mine.base + kChunkBytes, 4));
  EXPECT_TRUE(view->allows(mine.base + 2 * kChunkBytes - 16, 16));
  EXPECT_FALSE(view->allows(mine.base + 2 * kChunkBytes, 4));
  EXPECT_FALSE(view->allows(other.base, 4));
  EXPECT_FALSE(view->allows(0, 4));
  EXPECT_FALSE(view->allows(~std::uint64_t{0} - 3, 4));
}

TEST_F(MemoryTest, ArenaCanBePartOfAReservation) {
  const auto whole = reserve(2);
  ASSERT_TRUE(memory_->map(whole));
  const auto view = memory_->view({whole.base + kChunkBytes, kChunkBytes});
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->allows(whole.base, 4));
  EXPECT_TRUE(view->allows(whole.base + kChunkBytes, 4));
  EXPECT_EQ(memory_->view({whole.base, 3 * kChunkBytes}).error().code, ErrorCode::kInvalidValue);
}

TEST_F(MemoryTest, ViewOutlivedByItsReservationAllowsNothing) {
  const auto range = reserve(1);
  ASSERT_TRUE(memory_->map(range));
  const auto view = memory_->view(range);
  memory_->unreserve(range);
  const auto next = reserve(1);
  ASSERT_EQ(next.base, range.base);
  ASSERT_TRUE(memory_->map(next));
  EXPECT_FALSE(view->allows(range.base, 4));
}

TEST_F(MemoryTest, ViewWithoutArenaAllowsNothing) {
  const auto range = reserve(1);
  ASSERT_TRUE(memory_->map(range));
  EXPECT_FALSE(memory_->view({})->allows(range.base, 4));
}

TEST_F(MemoryTest, RangeIsMappedOnlyIfAllOfItIs) {
  const auto range = reserve(3);
  ASSERT_TRUE(memory_->map({range.base, kChunkBytes}));
  ASSERT_TRUE(memory_->map({range.base + kChunkBytes, kChunkBytes}));
  EXPECT_TRUE(memory_->is_mapped(range.base, 2 * kChunkBytes));
  EXPECT_FALSE(memory_->is_mapped(range.base, 2 * kChunkBytes + 1));
  EXPECT_FALSE(memory_->is_mapped(range.base, ~std::uint64_t{0}));
  EXPECT_FALSE(memory_->is_mapped(64, 1));
}

TEST_F(MemoryTest, AReservationIsAlignedAndNotBelowWhatWasAskedFor) {
  const auto first = *memory_->reserve(kChunkBytes);
  const auto aligned = *memory_->reserve(kChunkBytes, 0, 16 * kChunkBytes);
  EXPECT_EQ(aligned % (16 * kChunkBytes), 0u);
  EXPECT_EQ(*memory_->reserve(kChunkBytes, first + 3 * kChunkBytes), first + 3 * kChunkBytes);
  EXPECT_EQ(*memory_->reserve(kChunkBytes, first + 3 * kChunkBytes), first + 4 * kChunkBytes);
  EXPECT_EQ(*memory_->reserve(kChunkBytes), first + kChunkBytes) << "the holes are still used";
}

}  // namespace
}  // namespace slate::sim
