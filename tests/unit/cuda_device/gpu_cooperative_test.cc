// Cooperative launches and clusters on a GPU.
#include "tests/unit/cooperative_kernels.h"
#include "tests/unit/cuda_device/gpu_fixture.h"

namespace slate::cuda {
namespace {

class GpuCooperativeTest : public GpuTest {
 protected:
  device::LaunchSpec spec_of(const std::string& name, std::uint32_t blocks) {
    if (!module_) module_ = *load(test::kCooperativePtx);
    device::LaunchSpec spec;
    spec.function = *device_->find_function(*module_, name);
    spec.grid = {blocks, 1, 1};
    spec.block = {1024, 1, 1};
    spec.parameters = parameters_.bytes();
    spec.arena = arena_;
    return spec;
  }
  void SetUp() override {
    GpuTest::SetUp();
    parameters_.add(arena_.base);
  }
  std::uint32_t most() {
    return *device_->max_blocks_per_sm(spec_of("meet", 1).function, 1024, 0) *
           static_cast<std::uint32_t>(sm_count(device_->info()));
  }

  Parameters parameters_;
  std::optional<device::Module> module_;
};

TEST_F(GpuCooperativeTest, AllBlocksOfAFullDeviceMeet) {
  device::LaunchSpec spec = spec_of("meet", most());
  spec.cooperative = true;
  ASSERT_TRUE(device_->launch(spec, stream_));
  finish(stream_);
  const auto words = read<std::uint32_t>(arena_.base, 2);
  EXPECT_EQ(words[0], most());
  EXPECT_EQ(words[1], 1u);
}

TEST_F(GpuCooperativeTest, AGridThatDoesNotFitIsRefused) {
  device::LaunchSpec spec = spec_of("meet", most() + 1);
  spec.cooperative = true;
  EXPECT_EQ(device_->launch(spec, stream_).error().code, ErrorCode::kCooperativeTooLarge);
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuCooperativeTest, BlocksKnowTheirRankInTheClusterOfTheLaunch) {
  device::LaunchSpec spec = spec_of("ranks", 8);
  spec.cluster = {4, 1, 1};
  ASSERT_TRUE(device_->launch(spec, stream_));
  finish(stream_);
  const auto words = read<std::uint32_t>(arena_.base, 8);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(words[i], 400 + i % 4);
  EXPECT_GT(*device_->max_active_clusters(spec), 0u);
  EXPECT_GE(*device_->max_cluster_size(spec), 8u);
}

TEST_F(GpuCooperativeTest, ALaunchThatOverlapsBeginsBeforeTheOneInFrontHasEnded) {
  for (const bool overlaps : {false, true}) {
    device::LaunchSpec first = spec_of("await", 1), second = spec_of("tell", 1);
    first.block = second.block = {1, 1, 1};
    write(arena_.base, std::vector<std::uint32_t>{0, 7});
    second.overlaps = overlaps;
    ASSERT_TRUE(device_->launch(first, stream_));
    ASSERT_TRUE(device_->launch(second, stream_));
    finish(stream_);
    EXPECT_EQ(read<std::uint32_t>(arena_.base, 2)[1], overlaps ? 1U : 0U);
  }
}

TEST_F(GpuCooperativeTest, AFunctionKnowsOfTheClustersThatItWasCompiledFor) {
  EXPECT_FALSE(device_->function_info(spec_of("ranks", 8).function)->has_clusters);
  module_ = *load(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry four() .explicitcluster .reqnctapercluster 4, 1, 1 { ret; }\n");
  EXPECT_TRUE(device_->function_info(*device_->find_function(*module_, "four"))->has_clusters);
}

}  // namespace
}  // namespace slate::cuda
