// Partitions on a driver made of fakes: units, how they are joined, and drivers that lack
// something.
#include <algorithm>
#include <set>

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

using Sms = FakeGreen::Sms;

class PartitionRulesTest : public FakeGpuTest {
 protected:
  void open(const Driver& driver) {
    device_.reset();
    auto opened = CudaDevice::open(driver, 0);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
    fake_.forget_calls();
  }

  /// The SMs of these units, in rising order.
  Sms sms_of_units(std::uint32_t first, std::uint32_t count) {
    const auto units = device_->partition_units().value();
    Sms sms;
    for (std::uint32_t i = first; i < first + count; ++i) {
      sms.insert(sms.end(), units[i].begin(), units[i].end());
    }
    std::ranges::sort(sms);
    return sms;
  }

  /// The SMs that the driver gave a partition of these units.
  Sms sms_of_partition(std::uint32_t first, std::uint32_t count) {
    const auto made = device_->create_partition(first, count);
    EXPECT_TRUE(made) << made.error().message;
    return made ? fake_.green.sms_of(raw(*made)) : Sms{};
  }

  ErrorCode code_of_partition(std::uint32_t first, std::uint32_t count) {
    const auto made = device_->create_partition(first, count);
    return made ? ErrorCode::kNone : made.error().code;
  }
};

TEST_F(PartitionRulesTest, UnitsAreTheSmallestGroupsAndWhatIsLeftOver) {
  const auto units = device_->partition_units();
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 5);
  EXPECT_EQ(units->front(), (Sms{0, 4, 8, 12, 16, 20, 24, 28}));
  EXPECT_EQ(units->back(), (Sms{32, 33, 34, 35}));
  std::set<std::uint32_t> all;
  for (const auto& unit : *units) all.insert(unit.begin(), unit.end());
  EXPECT_EQ(all.size(), FakeGreen::kSms);
}

TEST_F(PartitionRulesTest, UnitsAreLookedForOnceAndTheSearchLeavesNothingBehind) {
  ASSERT_TRUE(device_->partition_units());
  EXPECT_EQ(fake_.count("cuModuleLoadDataEx"), fake_.count("cuModuleUnload"));
  EXPECT_EQ(fake_.green.greens(), 0);
  EXPECT_EQ(fake_.green.streams(), 0);
  fake_.forget_calls();
  ASSERT_TRUE(device_->partition_units());
  EXPECT_TRUE(fake_.calls().empty());
}

TEST_F(PartitionRulesTest, ALaunchThatMissesSmsIsRepeated) {
  fake_.green.sms_per_launch = 3;
  EXPECT_EQ(sms_of_units(0, 5).size(), FakeGreen::kSms);
  EXPECT_GT(fake_.green.launches, 5);
}

TEST_F(PartitionRulesTest, SmsThatAreBusyNowMayAnswerLater) {
  fake_.green.busy = {9};
  EXPECT_EQ(device_->partition_units().error().code, ErrorCode::kOutOfResources);
  EXPECT_EQ(fake_.green.greens(), 0);
  EXPECT_EQ(fake_.green.streams(), 0);
  fake_.green.busy = {};
  EXPECT_TRUE(device_->partition_units());
}

TEST_F(PartitionRulesTest, GroupsThatShareSmsMakeNoPartitions) {
  fake_.green.stolen = {5};
  for (int i = 0; i < 2; ++i) {
    const auto units = device_->partition_units();
    ASSERT_FALSE(units);
    EXPECT_EQ(units.error().code, ErrorCode::kNotSupported);
    fake_.green.stolen = {};  // it stays so
  }
}

TEST_F(PartitionRulesTest, ADriverThatRefusesEveryStepCannotPartition) {
  for (const char* step :
       {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
        "cuGreenCtxCreate", "cuGreenCtxStreamCreate", "cuModuleLoadDataEx", "cuLaunchKernel"}) {
    open(fake_.driver());
    fake_.fail(step, CUDA_ERROR_NOT_SUPPORTED);
    const auto units = device_->partition_units();
    ASSERT_FALSE(units) << step;
    EXPECT_EQ(units.error().code, ErrorCode::kNotSupported) << step;
    EXPECT_NE(units.error().message.find(step), std::string::npos) << units.error().message;
    EXPECT_EQ(code_of_partition(0, 1), ErrorCode::kNotSupported) << step;
    EXPECT_EQ(fake_.green.greens(), 0) << step;
    EXPECT_EQ(fake_.green.streams(), 0) << step;
    fake_.recover();
    EXPECT_TRUE(device_->create_stream(0)) << step;
  }
}

TEST_F(PartitionRulesTest, AFaultWhileLookingIsNoRefusal) {
  fake_.fail("cuStreamSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(device_->partition_units().error().code, ErrorCode::kIllegalAddress);
  EXPECT_TRUE(device_->lost());
}

TEST_F(PartitionRulesTest, ADriverThatLacksAFunctionDoesEverythingElse) {
  const auto expect_refusal = [this](const Driver& driver, const char* name) {
    open(driver);
    const auto units = device_->partition_units();
    ASSERT_FALSE(units) << name;
    EXPECT_EQ(units.error().code, ErrorCode::kNotSupported) << name;
    EXPECT_NE(units.error().message.find(name), std::string::npos) << units.error().message;
    EXPECT_EQ(code_of_partition(0, 1), ErrorCode::kNotSupported) << name;
    const auto stream = device_->create_stream(0);
    ASSERT_TRUE(stream) << name;
    EXPECT_TRUE(device_->launch({.function = device::Function{1}}, *stream)) << name;
  };
#define SLATE_WITHOUT(symbol)         \
  {                                   \
    Driver driver = fake_.driver();   \
    driver.symbol.function = nullptr; \
    expect_refusal(driver, #symbol);  \
  }
  SLATE_WITHOUT(cuDeviceGetDevResource)
  SLATE_WITHOUT(cuDevSmResourceSplitByCount)
  SLATE_WITHOUT(cuDevResourceGenerateDesc)
  SLATE_WITHOUT(cuGreenCtxCreate)
  SLATE_WITHOUT(cuGreenCtxDestroy)
  SLATE_WITHOUT(cuGreenCtxStreamCreate)
#undef SLATE_WITHOUT
}

TEST_F(PartitionRulesTest, APartitionHasTheSmsOfItsUnits) {
  for (std::uint32_t first = 0; first < 5; ++first) {
    for (std::uint32_t count = 1; count <= 5 - first; ++count) {
      EXPECT_EQ(sms_of_partition(first, count), sms_of_units(first, count))
          << first << " " << count;
    }
  }
}

TEST_F(PartitionRulesTest, UnitsAreSpreadWhereTheDriverCutsPairs) {
  fake_.green.cuts_pairs = true;
  const auto units = device_->partition_units();
  ASSERT_TRUE(units) << units.error().message;
  // 18 pairs in steps of 5: 0, 5, 10, 15, then 2, 7, 12, 17 ...; what is left over joins the last.
  ASSERT_EQ(units->size(), 4);
  EXPECT_EQ(units->front(), (Sms{0, 4, 9, 13, 18, 22, 27, 31}));
  EXPECT_EQ(units->back().size(), FakeGreen::kGroup + 2 * FakeGreen::kPair);
  std::set<std::uint32_t> all;
  for (const auto& unit : *units) all.insert(unit.begin(), unit.end());
  EXPECT_EQ(all.size(), FakeGreen::kSms);
  for (std::uint32_t first = 0; first < 4; ++first) {
    for (std::uint32_t count = 1; count <= 4 - first; ++count) {
      EXPECT_EQ(sms_of_partition(first, count), sms_of_units(first, count))
          << first << " " << count;
    }
  }
  EXPECT_EQ(code_of_partition(2, 3), ErrorCode::kInvalidValue);
}

TEST_F(PartitionRulesTest, PairsThatCannotBeJoinedMakeNoUnits) {
  fake_.green.cuts_pairs = true;
  fake_.green.joins = false;
  const auto units = device_->partition_units();
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->size(), 5);
  EXPECT_EQ(units->front(), (Sms{0, 4, 8, 12, 16, 20, 24, 28}));
  EXPECT_EQ(sms_of_partition(0, 3), sms_of_units(0, 3));
}

TEST_F(PartitionRulesTest, UnitsThatThereAreNotAreInvalid) {
  for (const auto& [first, count] :
       {std::pair{0U, 0U}, {5U, 1U}, {4U, 2U}, {0U, 6U}, {1U, ~0U}, {~0U, 1U}}) {
    EXPECT_EQ(code_of_partition(first, count), ErrorCode::kInvalidValue) << first << " " << count;
  }
  EXPECT_EQ(fake_.green.greens(), 0);
}

TEST_F(PartitionRulesTest, WhereTheRemainderCannotBeJoinedOneLargeGroupServes) {
  fake_.green.joins_remainder = false;
  for (std::uint32_t first = 0; first < 5; ++first) {
    EXPECT_EQ(sms_of_partition(first, 5 - first), sms_of_units(first, 5 - first)) << first;
  }
  EXPECT_EQ(sms_of_partition(1, 3), sms_of_units(1, 3));
  EXPECT_EQ(fake_.green.streams(), 0);
}

TEST_F(PartitionRulesTest, AGroupOfOtherSmsIsNotTakenAndTheRemainderIsDropped) {
  fake_.green.joins_remainder = false;
  fake_.green.cuts_elsewhere = true;
  EXPECT_EQ(sms_of_partition(2, 3), sms_of_units(2, 2));
  EXPECT_EQ(fake_.green.greens(), 1);
  EXPECT_EQ(sms_of_partition(0, 5), sms_of_units(0, 5));  // the whole needs no cut
}

TEST_F(PartitionRulesTest, WhereNothingCanBeJoinedOnlyTheEndsCanBeHad) {
  fake_.green.joins = false;
  EXPECT_EQ(sms_of_partition(0, 3), sms_of_units(0, 3));
  EXPECT_EQ(sms_of_partition(3, 2), sms_of_units(3, 2));
  EXPECT_EQ(sms_of_partition(1, 1), sms_of_units(1, 1));
  EXPECT_EQ(code_of_partition(1, 2), ErrorCode::kNotSupported);
  EXPECT_EQ(fake_.green.greens(), 3);
}

TEST_F(PartitionRulesTest, APartitionThatFindsNoMemoryIsOnlyRefused) {
  ASSERT_TRUE(device_->partition_units());
  fake_.fail("cuGreenCtxCreate", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(code_of_partition(0, 2), ErrorCode::kOutOfMemory);
  fake_.recover();
  EXPECT_EQ(code_of_partition(0, 2), ErrorCode::kNone);
}

TEST_F(PartitionRulesTest, StreamsOfAPartitionAreNonBlockingAndOfTheNearestPriority) {
  const device::Partition partition = device_->create_partition(1, 2).value();
  fake_.forget_calls();
  const device::Stream stream = device_->create_stream(-9, partition).value();
  EXPECT_EQ(fake_.green.sms_of(raw(stream)), sms_of_units(1, 2));
  ASSERT_TRUE(device_->create_stream(3, partition));
  const std::vector<std::string> expected = {"cuGreenCtxStreamCreate 1 -5",
                                             "cuGreenCtxStreamCreate 1 0"};
  EXPECT_EQ(fake_.calls(), expected);
  EXPECT_EQ(device_->stream_priorities(), (std::pair{0, -5}));
}

TEST_F(PartitionRulesTest, ADestroyedPartitionHasNoStreams) {
  const device::Partition partition = device_->create_partition(0, 1).value();
  device_->destroy_partition(partition);
  device_->destroy_partition(partition);
  EXPECT_EQ(fake_.green.greens(), 0);
  EXPECT_EQ(device_->create_stream(0, partition).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(PartitionRulesTest, DestroyingTheDeviceDestroysItsPartitionsBeforeTheContext) {
  ASSERT_TRUE(device_->create_partition(0, 2));
  ASSERT_TRUE(device_->create_partition(1, 2));
  device_.reset();
  EXPECT_EQ(fake_.green.greens(), 0);
  EXPECT_EQ(fake_.calls().back(), "cuDevicePrimaryCtxRelease");
}

TEST_F(PartitionRulesTest, AnEventIsRecordedOnTheStreamIfTheDriverDoesThat) {
  const device::Stream stream =
      device_->create_stream(0, device_->create_partition(0, 2).value()).value();
  const device::Event event = device_->create_event(false).value();
  fake_.forget_calls();
  ASSERT_TRUE(device_->record(event, stream));
  EXPECT_EQ(fake_.calls(), std::vector<std::string>{"cuEventRecord"});
}

TEST_F(PartitionRulesTest, AnEventRefusedOnAPartitionsStreamIsRecordedOnThePartition) {
  const device::Stream stream =
      device_->create_stream(0, device_->create_partition(0, 2).value()).value();
  const device::Stream other = device_->create_stream(0).value();
  const device::Event event = device_->create_event(false).value();
  fake_.fail("cuEventRecord", CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(device_->record(event, stream));
  EXPECT_EQ(fake_.count("cuGreenCtxRecordEvent"), 1);
  EXPECT_EQ(device_->record(event, other).error().code, ErrorCode::kInvalidHandle);
  fake_.fail("cuEventRecord", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(device_->record(event, stream).error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(fake_.count("cuGreenCtxRecordEvent"), 1);
  EXPECT_TRUE(device_->lost());
}

}  // namespace
}  // namespace slate::cuda
