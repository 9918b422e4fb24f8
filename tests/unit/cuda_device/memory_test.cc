// AddressSpace on a driver made of fakes: the order of the calls, and what a failure leaves behind.
#include <fmt/format.h>

#include <array>

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

constexpr std::uint64_t kChunk = FakeDriver::kGranularity;
constexpr device::AddressRange kRange{.base = std::uint64_t{1} << 40, .bytes = 4 * kChunk};

using MemoryRulesTest = FakeGpuTest;

TEST_F(MemoryRulesTest, LimitsAreRaisedAndNeverLowered) {
  fake_.forget_calls();
  ASSERT_TRUE(device_->raise_limit(device::Limit::kHeap, 1 << 20));
  EXPECT_EQ(fake_.calls().back(),
            "cuCtxSetLimit " + std::to_string(int{CU_LIMIT_MALLOC_HEAP_SIZE}) + " 1048576");
  ASSERT_TRUE(device_->raise_limit(device::Limit::kPendingLaunches, 8192));
  EXPECT_EQ(
      fake_.calls().back(),
      "cuCtxSetLimit " + std::to_string(int{CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT}) + " 8192");
  fake_.forget_calls();
  ASSERT_TRUE(device_->raise_limit(device::Limit::kHeap, 512));
  EXPECT_EQ(fake_.calls(), std::vector<std::string>{"cuCtxGetLimit"});
  fake_.fail("cuCtxSetLimit", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(device_->raise_limit(device::Limit::kHeap, 2 << 20).error().code,
            ErrorCode::kInvalidValue);
}

TEST_F(MemoryRulesTest, LocalMemoryGrowsAndShrinks) {
  for (const std::uint64_t bytes : {std::uint64_t{65536}, device::kBaseLocalBytes}) {
    fake_.forget_calls();
    ASSERT_TRUE(device_->set_local_memory(bytes));
    EXPECT_EQ(fake_.calls(), std::vector<std::string>{fmt::format(
                                 "cuCtxSetLimit {} {}", int{CU_LIMIT_STACK_SIZE}, bytes)});
  }
  fake_.fail("cuCtxSetLimit", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(device_->set_local_memory(65536).error().code, ErrorCode::kOutOfMemory);
}

TEST_F(MemoryRulesTest, NewMemoryIsZeroBeforeMapReturns) {
  ASSERT_TRUE(device_->map(kRange));
  const std::vector<std::string> expected = {
      "cuMemCreate", "cuMemMap 0x10000000000 0x800000", "cuMemSetAccess",
      "cuMemsetD32Async 0x10000000000 0x0 2097152", "cuStreamSynchronize"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(MemoryRulesTest, AMapThatFailsLeavesNothingBehind) {
  for (const char* step :
       {"cuMemMap", "cuMemSetAccess", "cuMemsetD32Async", "cuStreamSynchronize"}) {
    fake_.forget_calls();
    fake_.fail(step, CUDA_ERROR_OUT_OF_MEMORY);
    const auto mapped = device_->map(kRange);
    ASSERT_FALSE(mapped) << step;
    EXPECT_EQ(mapped.error().code, ErrorCode::kOutOfMemory) << step;
    EXPECT_EQ(fake_.count("cuMemUnmap"), step == std::string("cuMemMap") ? 0 : 1) << step;
    EXPECT_EQ(fake_.count("cuMemRelease"), 1) << step;
    fake_.recover();
    EXPECT_FALSE(device_->unmap(kRange)) << step;
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(MemoryRulesTest, MemoryMappedAgainIsNotClearedAndGoesWithItsLastMapping) {
  constexpr device::AddressRange kAgain{.base = kRange.base + 8 * kChunk, .bytes = kRange.bytes};
  ASSERT_TRUE(device_->map(kRange));
  fake_.forget_calls();
  ASSERT_TRUE(device_->map_again(kAgain, kRange.base));
  EXPECT_EQ(fake_.calls(),
            (std::vector<std::string>{"cuMemMap 0x10001000000 0x800000", "cuMemSetAccess"}));
  ASSERT_TRUE(device_->unmap(kRange));
  EXPECT_EQ(fake_.count("cuMemRelease"), 0);
  ASSERT_TRUE(device_->unmap(kAgain));
  EXPECT_EQ(fake_.count("cuMemRelease"), 1);
  EXPECT_FALSE(device_->map_again(kAgain, kRange.base)) << "it is mapped no more";
}

TEST_F(MemoryRulesTest, MemoryFromAnotherProcessIsNotCleared) {
  fake_.forget_calls();
  ASSERT_TRUE(device_->map_exported(kRange, 0));
  EXPECT_EQ(fake_.calls(),
            (std::vector<std::string>{"cuMemImportFromShareableHandle",
                                      "cuMemMap 0x10000000000 0x800000", "cuMemSetAccess"}));
  EXPECT_TRUE(device_->export_memory(kRange));
  ASSERT_TRUE(device_->unmap(kRange));
  EXPECT_EQ(fake_.count("cuMemRelease"), 1);
  EXPECT_FALSE(device_->export_memory(kRange)) << "it is mapped no more";
}

TEST_F(MemoryRulesTest, OnlyTheVeryRangeThatWasMappedCanBeUnmapped) {
  ASSERT_TRUE(device_->map(kRange));
  for (const device::AddressRange other : {device::AddressRange{kRange.base, kChunk},
                                           device::AddressRange{kRange.base + kChunk, kChunk},
                                           device::AddressRange{kRange.base, 8 * kChunk}}) {
    const auto unmapped = device_->unmap(other);
    ASSERT_FALSE(unmapped);
    EXPECT_EQ(unmapped.error().code, ErrorCode::kInvalidValue);
  }
  EXPECT_TRUE(device_->unmap(kRange));
  EXPECT_EQ(fake_.count("cuMemRelease"), 1);
  EXPECT_FALSE(device_->unmap(kRange));
}

TEST_F(MemoryRulesTest, AnUnmapThatTheDriverRefusesCanBeRepeated) {
  ASSERT_TRUE(device_->map(kRange));
  fake_.fail("cuMemUnmap", CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(device_->unmap(kRange));
  EXPECT_EQ(fake_.count("cuMemRelease"), 0);
  fake_.recover();
  EXPECT_TRUE(device_->unmap(kRange));
  EXPECT_EQ(fake_.count("cuMemRelease"), 1);
}

TEST_F(MemoryRulesTest, RangesAreMultiplesOfTheGranularity) {
  for (const device::AddressRange odd :
       {device::AddressRange{kRange.base, kChunk - 1},
        device::AddressRange{kRange.base + 4096, kChunk}, device::AddressRange{kRange.base, 0}}) {
    const auto mapped = device_->map(odd);
    ASSERT_FALSE(mapped);
    EXPECT_EQ(mapped.error().code, ErrorCode::kInvalidValue);
  }
  EXPECT_FALSE(device_->reserve(kChunk + 1));
  EXPECT_FALSE(device_->reserve(0));
  EXPECT_TRUE(fake_.calls().empty());
}

TEST_F(MemoryRulesTest, DestroyingTheDeviceGivesBackWhatIsMappedAndReserved) {
  const auto base = device_->reserve(kRange.bytes);
  ASSERT_TRUE(base);
  ASSERT_TRUE(device_->map({.base = *base, .bytes = kChunk}));
  ASSERT_TRUE(device_->map({.base = *base + kChunk, .bytes = kChunk}));
  device_.reset();
  EXPECT_EQ(fake_.count("cuMemUnmap"), 2);
  EXPECT_EQ(fake_.count("cuMemRelease"), 2);
  EXPECT_EQ(fake_.count("cuMemAddressFree"), 1);
  EXPECT_EQ(fake_.calls().back(), "cuDevicePrimaryCtxRelease");
}

TEST_F(MemoryRulesTest, AReservationIsGivenBackOnce) {
  const auto base = device_->reserve(kRange.bytes);
  ASSERT_TRUE(base);
  device_->unreserve({.base = *base, .bytes = kChunk});
  EXPECT_EQ(fake_.count("cuMemAddressFree"), 0);
  device_->unreserve({.base = *base, .bytes = kRange.bytes});
  device_->unreserve({.base = *base, .bytes = kRange.bytes});
  EXPECT_EQ(fake_.count("cuMemAddressFree"), 1);
}

TEST_F(MemoryRulesTest, WishesOfAReservationReachTheDriver) {
  fake_.forget_calls();
  EXPECT_TRUE(device_->reserve_at(kChunk, 4 * kChunk, 0x7000'0000'0000));
  EXPECT_EQ(fake_.wished_address, 0x7000'0000'0000u);
  EXPECT_EQ(fake_.wished_alignment, 4 * kChunk);
  EXPECT_TRUE(device_->reserve_at(kChunk, 1, 0));
  EXPECT_EQ(fake_.wished_alignment, kChunk) << "no less than the granularity";
}

}  // namespace
}  // namespace slate::cuda
