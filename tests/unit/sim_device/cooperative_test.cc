// Cooperative launches on the simulated GPU: all blocks of a grid are resident together, or wait.
#include <cstring>

#include "tests/unit/cooperative_kernels.h"
#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

class CooperativeTest : public SimFixture {
 protected:
  void SetUp() override {
    open("sms=4");
    module_ = load(test::kCooperativePtx);
  }
  Result<void> meet(device::Stream stream, std::uint32_t blocks, std::uint64_t at,
                    bool cooperative = true) {
    const device::Address address = word(at);
    std::byte parameters[sizeof(address)];
    std::memcpy(parameters, &address, sizeof(address));
    device::LaunchSpec spec;
    spec.function = function("meet");
    spec.grid = {blocks, 1, 1};
    spec.block = {1024, 1, 1};
    spec.parameters = parameters;
    spec.arena = arena_;
    spec.cooperative = cooperative;
    return device_->launch(spec, stream);
  }
  std::uint32_t most() {
    return *device_->max_blocks_per_sm(function("meet"), 1024, 0) *
           static_cast<std::uint32_t>(sm_count(device_->info()));
  }
};

TEST_F(CooperativeTest, AllBlocksOfAFullDeviceMeet) {
  ASSERT_TRUE(meet(stream_, most(), 0));
  ASSERT_TRUE(finish(stream_));
  const auto words = read<std::uint32_t>(word(0), 2);
  EXPECT_EQ(words[0], most());
  EXPECT_EQ(words[1], 1u) << "cooperative groups have a workspace";
}

TEST_F(CooperativeTest, APlainLaunchHasNoWorkspace) {
  ASSERT_TRUE(meet(stream_, 1, 0, false));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(1), 1)[0], 0u);
}

TEST_F(CooperativeTest, AGridThatDoesNotFitIsRefused) {
  EXPECT_EQ(meet(stream_, most() + 1, 0).error().code, ErrorCode::kCooperativeTooLarge);
  const auto partition = device_->create_partition(0, 1);
  ASSERT_TRUE(partition);
  const device::Stream narrow = *device_->create_stream(0, *partition);
  EXPECT_EQ(meet(narrow, most(), 0).error().code, ErrorCode::kCooperativeTooLarge);
  EXPECT_TRUE(meet(narrow, 1, 0));
  EXPECT_TRUE(finish(narrow));
  device_->destroy_stream(narrow);
  device_->destroy_partition(*partition);
}

TEST_F(CooperativeTest, GridsThatFitOnlyOneByOneDoNotHoldEachOtherUp) {
  std::vector<device::Stream> streams;
  for (int i = 0; i < 6; ++i) {
    // Of different priorities: a later one may come first.
    streams.push_back(*device_->create_stream(-(i % 3)));
    ASSERT_TRUE(meet(streams.back(), most() - static_cast<std::uint32_t>(i % 2), 16 * i));
  }
  for (const device::Stream stream : streams) {
    ASSERT_TRUE(finish(stream));
    device_->destroy_stream(stream);
  }
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(read<std::uint32_t>(word(16 * i), 1)[0], most() - static_cast<std::uint32_t>(i % 2));
}

TEST_F(CooperativeTest, TensorMapsAreRefusedInWords) {
  TensorMapSpec spec;
  spec.rank = 2;
  EXPECT_EQ(device_->encode_tensor_map(spec).error().code, ErrorCode::kNotSupported);
}

TEST_F(CooperativeTest, ClustersAreRefusedInWords) {
  device::LaunchSpec spec;
  spec.function = function("ranks");
  spec.cluster = {2, 1, 1};
  const auto refused = device_->launch(spec, stream_);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(device_->max_active_clusters(spec).error().code, ErrorCode::kNotSupported);
  module_ = load(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry two() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }\n"
      ".visible .entry one() .explicitcluster .reqnctapercluster 1, 1, 1 { ret; }\n");
  spec = {};
  spec.function = function("two");
  EXPECT_EQ(device_->launch(spec, stream_).error().code, ErrorCode::kNotSupported);
  EXPECT_TRUE(device_->function_info(spec.function)->has_clusters);
  EXPECT_TRUE(device_->function_info(spec.function)->needs_cluster);
  EXPECT_EQ(device_->function_info(spec.function)->cluster,
            (std::array<std::uint32_t, 3>{2, 1, 1}));
  spec.function = function("one");
  EXPECT_FALSE(device_->function_info(spec.function)->has_clusters);
  EXPECT_TRUE(device_->launch(spec, stream_));
  EXPECT_TRUE(finish(stream_));
}

}  // namespace
}  // namespace slate::sim
