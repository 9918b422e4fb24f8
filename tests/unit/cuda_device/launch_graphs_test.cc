// Launches that come again as graphs, on a driver made of fakes: what reaches the driver, and when
// it is launched plainly instead.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <list>

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

using Calls = std::vector<std::string>;

constexpr int kBeforeGraph = 2;  // launches of a shape that are made plainly

class LaunchGraphsTest : public FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    module_ = device_->load_module(device::ImageKind::kPtx, image_).value();
    function_ = device_->find_function(module_, "kernel").value();
    fake_.forget_calls();
  }

  /// Of so many blocks, with `value` as the second parameter.
  device::LaunchSpec spec(std::uint32_t blocks, std::uint64_t value) {
    auto& bytes = parameters_.emplace_back();
    std::memcpy(bytes.data() + 8, &value, sizeof(value));
    return {
        .function = function_, .grid = {blocks, 1, 1}, .block = {32, 1, 1}, .parameters = bytes};
  }
  bool launch(std::uint32_t blocks, std::uint64_t value) {
    return device_->launch(spec(blocks, value), stream_).has_value();
  }
  /// `count` launches of 1, 2, 3 ... blocks, with `value` each.
  bool launch_row(std::size_t count, std::uint64_t value) {
    std::vector<device::LaunchSpec> specs;
    for (std::size_t i = 0; i < count; ++i)
      specs.push_back(spec(static_cast<std::uint32_t>(i + 1), value));
    return device_->launch_row(specs, stream_).has_value();
  }
  Calls calls_of(const std::function<bool()>& launches) {
    fake_.forget_calls();
    EXPECT_TRUE(launches());
    return fake_.calls();
  }

  const std::array<std::byte, 1> image_{std::byte{'/'}};
  device::Module module_{};
  device::Function function_{};
  std::list<std::array<std::byte, 20>> parameters_;  // as the fake's functions have them
};

TEST_F(LaunchGraphsTest, WhatComesAgainIsLaunchedAsAGraph) {
  for (int i = 0; i < kBeforeGraph; ++i)
    EXPECT_EQ(calls_of([&] { return launch(1, 5); }), Calls{"cuLaunchKernel"});
  EXPECT_TRUE(launch(1, 5));
  EXPECT_EQ(fake_.count("cuGraphInstantiate"), 1);
  EXPECT_EQ(fake_.count("cuGraphLaunch"), 1);
  EXPECT_EQ(calls_of([&] { return launch(1, 5); }), Calls{"cuGraphLaunch"});
}

TEST_F(LaunchGraphsTest, OnlyParametersThatChangedAreSet) {
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  const Calls changed = {"cuGraphExecKernelNodeSetParams 6", "cuGraphLaunch"};
  EXPECT_EQ(calls_of([&] { return launch(1, 6); }), changed);
  EXPECT_EQ(calls_of([&] { return launch(1, 6); }), Calls{"cuGraphLaunch"});
}

TEST_F(LaunchGraphsTest, AnotherShapeIsAnotherGraph) {
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  EXPECT_EQ(calls_of([&] { return launch(2, 5); }), Calls{"cuLaunchKernel"});
  EXPECT_EQ(calls_of([&] { return launch(1, 5); }), Calls{"cuGraphLaunch"});
}

TEST_F(LaunchGraphsTest, ARowIsCutIntoAsFewGraphsAsThereCanBe) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(launch_row(22, 1));
  const Calls whole = {"cuGraphLaunch", "cuGraphLaunch", "cuLaunchKernel", "cuLaunchKernel"};
  EXPECT_EQ(calls_of([&] { return launch_row(22, 1); }), whole) << "16, 4, and two by themselves";
  const Calls calls = calls_of([&] { return launch_row(22, 2); });
  EXPECT_EQ(std::ranges::count(calls, "cuGraphExecKernelNodeSetParams 2"), 20);
  EXPECT_EQ(std::ranges::count(calls, "cuGraphLaunch"), 2);
}

TEST_F(LaunchGraphsTest, NodesFollowOneAnotherWithTheStreamsPriority) {
  stream_ = device_->create_stream(-3).value();
  for (int i = 0; i < kBeforeGraph; ++i) EXPECT_TRUE(launch_row(4, 1));
  const Calls calls = calls_of([&] { return launch_row(4, 1); });
  const auto of = [&](std::string_view name) {
    Calls its;
    std::ranges::copy_if(calls, std::back_inserter(its),
                         [&](const std::string& call) { return call.starts_with(name); });
    return its;
  };
  const Calls nodes = {"cuGraphAddKernelNode 1 0", "cuGraphAddKernelNode 2 1",
                       "cuGraphAddKernelNode 3 1", "cuGraphAddKernelNode 4 1"};
  EXPECT_EQ(of("cuGraphAddKernelNode"), nodes);
  EXPECT_EQ(of("cuGraphKernelNodeSetAttribute"),
            Calls(4, "cuGraphKernelNodeSetAttribute priority -3"));
  EXPECT_EQ(of("cuGraphInstantiate"), Calls{"cuGraphInstantiate with the nodes' priorities"});
}

TEST_F(LaunchGraphsTest, KernelsThatMayLaunchOthersAreLaunchedPlainly) {
  const std::string text = "// .extern .func __cudaCDP2LaunchDeviceV2";
  module_ = device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text))).value();
  const device::Function other =
      std::exchange(function_, device_->find_function(module_, "kernel").value());
  for (int i = 0; i < 2 * kBeforeGraph + 1; ++i)
    EXPECT_EQ(calls_of([&] { return launch(1, 5); }).back(), "cuLaunchKernel");
  for (int i = 0; i < 2 * kBeforeGraph + 1; ++i) EXPECT_TRUE(launch_row(4, 1));
  EXPECT_EQ(fake_.count("cuGraphInstantiate"), 0);
  function_ = other;
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  EXPECT_EQ(fake_.count("cuGraphLaunch"), 1);
}

TEST_F(LaunchGraphsTest, WhatGoesAheadOrSharesSmsHasGraphsOfItsOwn) {
  auto other = spec(1, 1);
  other.ahead = true;
  other.carveout = 28;
  const Calls plain = {"cuLaunchKernelEx priority -1 carveout 28"};
  for (int i = 0; i < kBeforeGraph; ++i) {
    EXPECT_EQ(calls_of([&] { return device_->launch(other, stream_).has_value(); }), plain);
    EXPECT_TRUE(launch(1, 1));
  }
  EXPECT_TRUE(launch(1, 1));
  const Calls made = calls_of([&] { return device_->launch(other, stream_).has_value(); });
  EXPECT_EQ(std::ranges::count(made, "cuGraphKernelNodeSetAttribute priority -1"), 1);
  EXPECT_EQ(std::ranges::count(made, "cuGraphKernelNodeSetAttribute carveout 28"), 1);
  EXPECT_EQ(made.back(), "cuGraphLaunch");
  EXPECT_EQ(calls_of([&] { return launch(1, 1); }), Calls{"cuGraphLaunch"});
}

TEST_F(LaunchGraphsTest, ARefusalIsAnsweredByThePlainLaunch) {
  std::uint32_t blocks = 10;
  for (const char* step : {"cuGraphAddKernelNode", "cuGraphInstantiate",
                           "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"}) {
    ++blocks;
    fake_.fail(step, CUDA_ERROR_INVALID_VALUE);
    for (std::uint64_t value = 0; value < 20; ++value) EXPECT_TRUE(launch(blocks, value)) << step;
    EXPECT_EQ(fake_.count("cuGraphCreate"), 1) << step << ": it is not tried again";
    device_->unload_module(device_->load_module(device::ImageKind::kPtx, image_).value());
    EXPECT_EQ(fake_.count("cuGraphCreate"), fake_.count("cuGraphDestroy")) << step;
    fake_.recover();
    fake_.forget_calls();
  }
  fake_.fail("cuGraphInstantiate", CUDA_ERROR_OUT_OF_MEMORY);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(launch(99, 1));
  EXPECT_EQ(fake_.count("cuGraphCreate"), 1);
}

TEST_F(LaunchGraphsTest, ARefusedLaunchOfARowDoesNotKeepThoseBehindIt) {
  fake_.fail("cuLaunchKernel", CUDA_ERROR_OUT_OF_MEMORY);
  const auto done = device_->launch_row(std::array{spec(1, 1), spec(2, 1), spec(3, 1)}, stream_);
  EXPECT_EQ(done.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(fake_.count("cuLaunchKernel"), 3);
  fake_.recover();
  fake_.forget_calls();
  auto wrong = spec(1, 1);
  wrong.block = {2048, 1, 1};
  EXPECT_EQ(device_->launch_row(std::array{spec(1, 1), wrong, spec(3, 1)}, stream_).error().code,
            ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(fake_.count("cuLaunchKernel"), 2);
}

TEST_F(LaunchGraphsTest, AGraphGoesWithAModuleOfItsKernels) {
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  fake_.forget_calls();
  device_->unload_module(module_);
  const Calls expected = {"cuGraphExecDestroy", "cuGraphDestroy", "cuModuleUnload"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(LaunchGraphsTest, AGraphOfAnotherModuleStays) {
  const auto other = device_->load_module(device::ImageKind::kPtx, image_).value();
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  device_->unload_module(other);
  EXPECT_EQ(calls_of([&] { return launch(1, 5); }), Calls{"cuGraphLaunch"});
}

TEST_F(LaunchGraphsTest, AGraphGoesWithItsStreamAndWhenStacksGrow) {
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  fake_.forget_calls();
  EXPECT_TRUE(device_->set_local_memory(4096));
  EXPECT_EQ(fake_.count("cuGraphExecDestroy"), 1);
  const auto calls = fake_.calls();
  EXPECT_LT(std::ranges::find(calls, "cuGraphExecDestroy"),
            std::ranges::find_if(
                calls, [](const auto& call) { return call.starts_with("cuCtxSetLimit"); }))
      << "it has the address of what the driver gives back then";
  for (int i = 0; i <= kBeforeGraph; ++i) EXPECT_TRUE(launch(1, 5));
  device_->destroy_stream(stream_);
  EXPECT_EQ(fake_.count("cuGraphExecDestroy"), 2);
  stream_ = device_->create_stream(0).value();
}

TEST_F(LaunchGraphsTest, TheDriverTakesItsMemoryForGraphsAtTheBeginning) {
  const auto opened = CudaDevice::open(fake_.driver(), 0);
  ASSERT_TRUE(opened);
  const std::size_t made = fake_.count("cuGraphInstantiate");
  EXPECT_GE(made, 100);
  EXPECT_EQ(fake_.count("cuGraphLaunch"), made);
  EXPECT_EQ(fake_.count("cuGraphExecDestroy"), made);
  EXPECT_EQ(fake_.count("cuGraphDestroy"), made);
}

TEST_F(LaunchGraphsTest, OnlyThoseThatAreNotInUseAreGivenUpForOthers) {
  constexpr int kShapes = 100;
  const auto launch_all = [&] {
    for (int i = 0; i < kShapes; ++i) EXPECT_TRUE(launch(1000 + static_cast<std::uint32_t>(i), 1));
  };
  for (int i = 0; i < 10; ++i) launch_all();
  const std::size_t made = fake_.count("cuGraphInstantiate");
  EXPECT_GT(made, 10);
  EXPECT_LT(made, kShapes);
  EXPECT_EQ(fake_.count("cuGraphExecDestroy"), 0);
  // Later the program does something else.
  for (int i = 0; i < 300000; ++i) ASSERT_TRUE(launch(1, 1));
  fake_.forget_calls();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(launch(7, 1));
  EXPECT_EQ(fake_.count("cuGraphExecDestroy"), 1);
  EXPECT_EQ(fake_.count("cuGraphInstantiate"), 1);
}

TEST_F(LaunchGraphsTest, SmallCopiesWithinTheDeviceAreGraphsToo) {
  const auto copy = [&](std::uint64_t to, std::uint64_t bytes) {
    return calls_of([&] {
      return device_->copy(Place::on_device(to), Place::on_device(0x1000), {bytes, 1}, stream_)
          .has_value();
    });
  };
  for (int i = 0; i < kBeforeGraph; ++i) EXPECT_EQ(copy(0x2000, 4), Calls{"cuMemcpyDtoDAsync"});
  copy(0x2000, 4);
  EXPECT_EQ(copy(0x2000, 4), Calls{"cuGraphLaunch"});
  const Calls changed = {"cuGraphExecMemcpyNodeSetParams 0x3000 0x1000 8", "cuGraphLaunch"};
  EXPECT_EQ(copy(0x3000, 8), changed);
  EXPECT_EQ(copy(0x3000, StreamGraphs::kMostCopied + 1), Calls{"cuMemcpyDtoDAsync"});
  fake_.fail("cuGraphExecMemcpyNodeSetParams", CUDA_ERROR_INVALID_VALUE);
  const Calls refused = {"cuGraphExecMemcpyNodeSetParams 0x4000 0x1000 8", "cuGraphExecDestroy",
                         "cuGraphDestroy", "cuMemcpyDtoDAsync"};
  EXPECT_EQ(copy(0x4000, 8), refused);
  EXPECT_EQ(copy(0x4000, 8), Calls{"cuMemcpyDtoDAsync"});
}

TEST_F(LaunchGraphsTest, ClustersAndCooperativeLaunchesAreMadePlainly) {
  auto cooperative = spec(1, 1);
  cooperative.cooperative = true;
  auto clustered = spec(1, 1);
  clustered.cluster = {2, 1, 1};
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(device_->launch(cooperative, stream_));
    EXPECT_TRUE(
        device_->launch_row(std::array{clustered, clustered, clustered, clustered}, stream_));
  }
  EXPECT_EQ(fake_.count("cuGraphLaunch"), 0);
}

TEST_F(LaunchGraphsTest, LaunchesThatMayBeginEarlyAreMadePlainlyAndSaySo) {
  auto early = spec(1, 1);
  early.overlaps = true;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(calls_of([&] { return device_->launch(early, stream_).has_value(); }),
              Calls{"cuLaunchKernelEx overlaps 1"});
    EXPECT_TRUE(device_->launch_row(std::array{early, early, early, early}, stream_));
  }
  EXPECT_EQ(fake_.count("cuGraphLaunch"), 0);
}

TEST_F(LaunchGraphsTest, WishesThatADriverDoesNotKnowAreDropped) {
  auto wishes = spec(1, 1);
  wishes.ahead = true;
  wishes.carveout = 28;
  wishes.overlaps = true;
  Driver driver = fake_.driver();
  driver.cuGraphLaunch.function = nullptr;
  driver.cuDriverGetVersion.function = [](int* version) {
    *version = 12020;
    return CUDA_SUCCESS;
  };
  for (const char* call : {"cuLaunchKernelEx priority -1 overlaps 1", "cuLaunchKernel"}) {
    const auto opened = CudaDevice::open(driver, 0);
    ASSERT_TRUE(opened);
    const auto stream = (*opened)->create_stream(0);
    EXPECT_EQ(calls_of([&] { return (*opened)->launch(wishes, *stream).has_value(); }),
              Calls{call});
    driver.cuLaunchKernelEx.function = nullptr;
  }
}

TEST_F(LaunchGraphsTest, ADriverWithoutGraphsLaunchesPlainly) {
  Driver driver = fake_.driver();
  driver.cuGraphLaunch.function = nullptr;
  auto opened = CudaDevice::open(driver, 0);
  ASSERT_TRUE(opened);
  const auto stream = (*opened)->create_stream(0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE((*opened)->launch(spec(1, 1), *stream));
  EXPECT_EQ(fake_.count("cuGraphCreate"), 0);
}

}  // namespace
}  // namespace slate::cuda
