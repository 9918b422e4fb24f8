// Launches, copies and fills on a driver made of fakes: what reaches the driver, and in how many
// calls.
#include <array>

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

constexpr device::Address kTo = 0x10000;
constexpr std::uint64_t kWide = FakeDriver::kMaxPitch + 1;

class WorkRulesTest : public FakeGpuTest {
 protected:
  ErrorCode launch(device::Dim3 grid, device::Dim3 block) {
    const auto launched =
        device_->launch({.function = device::Function{1}, .grid = grid, .block = block}, stream_);
    return launched ? ErrorCode::kNone : launched.error().code;
  }
  std::vector<std::string> calls_of_fill(std::uint64_t to, std::uint64_t pitch, Box shape,
                                         FillValue value = 0xab) {
    fake_.forget_calls();
    EXPECT_TRUE(device_->fill(to, pitch, value, shape, stream_));
    return fake_.calls();
  }

  std::array<std::byte, 64> host_{};
};

using Calls = std::vector<std::string>;

TEST_F(WorkRulesTest, AConfigurationBeyondTheLimitsNeverReachesTheDriver) {
  const device::Dim3 one{};
  for (const device::Dim3 block : {device::Dim3{1025, 1, 1}, device::Dim3{1, 1, 65},
                                   device::Dim3{64, 32, 1}, device::Dim3{0, 1, 1}}) {
    EXPECT_EQ(launch(one, block), ErrorCode::kInvalidConfiguration);
  }
  for (const device::Dim3 grid : {device::Dim3{1, 65536, 1}, device::Dim3{1, 1, 65536},
                                  device::Dim3{0x80000000, 1, 1}, device::Dim3{1, 0, 1}}) {
    EXPECT_EQ(launch(grid, one), ErrorCode::kInvalidConfiguration);
  }
  EXPECT_TRUE(fake_.calls().empty());
  EXPECT_EQ(launch({0x7fffffff, 65535, 65535}, {1024, 1, 1}), ErrorCode::kNone);
}

TEST_F(WorkRulesTest, TheDriversRefusalsKeepTheirKind) {
  fake_.fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(launch({}, {1024, 1, 1}), ErrorCode::kOutOfResources);
  fake_.fail("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch({}, {1024, 1, 1}), ErrorCode::kInvalidValue);
  EXPECT_FALSE(device_->lost());
}

TEST_F(WorkRulesTest, ParametersArriveAsTheyArePacked) {
  const std::string packed("\x01\x00\x02\x03", 4);
  ASSERT_TRUE(device_->launch(
      {.function = device::Function{1}, .parameters = std::as_bytes(std::span(packed))}, stream_));
  EXPECT_EQ(fake_.last_parameters, packed);
  ASSERT_TRUE(device_->launch({.function = device::Function{1}}, stream_));
  EXPECT_EQ(fake_.last_parameters, "");
}

TEST_F(WorkRulesTest, AContiguousCopyIsOneLinearCall) {
  ASSERT_TRUE(
      device_->copy(Place::on_device(kTo), Place::on_host(host_.data()), {.width = 64}, stream_));
  ASSERT_TRUE(
      device_->copy(Place::on_device(kTo, 16), Place::on_host(host_.data(), 16), {16, 4}, stream_));
  const Calls expected = {"cuMemcpyHtoDAsync 0x10000 64", "cuMemcpyHtoDAsync 0x10000 64"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(WorkRulesTest, APitchedCopyIsOneRectangle) {
  ASSERT_TRUE(device_->copy(Place::on_device(kTo, 512), Place::on_host(host_.data(), 16), {16, 4},
                            stream_));
  ASSERT_TRUE(device_->copy(Place::on_host(host_.data(), 16), Place::on_device(kTo, 512), {16, 4},
                            stream_));
  ASSERT_TRUE(device_->copy(Place::on_device(kTo, 512), Place::on_device(kTo + 0x8000, 16), {16, 4},
                            stream_));
  EXPECT_EQ(fake_.calls(), Calls(3, "cuMemcpy2DAsync 16x4"));
}

TEST_F(WorkRulesTest, APitchAboveTheDriversLimitIsCopiedRowByRow) {
  ASSERT_TRUE(device_->copy(Place::on_device(kTo, kWide), Place::on_host(host_.data(), 16), {16, 3},
                            stream_));
  const Calls expected = {"cuMemcpyHtoDAsync 0x10000 16", "cuMemcpyHtoDAsync 0x11001 16",
                          "cuMemcpyHtoDAsync 0x12002 16"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(WorkRulesTest, RowsThatOverlapOrOverflowAreInvalid) {
  const auto code = [&](std::uint64_t to_pitch, std::uint64_t from_pitch, Box shape) {
    const auto copied = device_->copy(Place::on_device(kTo, to_pitch),
                                      Place::on_host(host_.data(), from_pitch), shape, stream_);
    return copied ? ErrorCode::kNone : copied.error().code;
  };
  EXPECT_EQ(code(15, 16, {16, 2}), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(16, 0, {16, 2}), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(16, 16, {16, ~std::uint64_t{0}}), ErrorCode::kInvalidValue);
  EXPECT_TRUE(fake_.calls().empty());
}

TEST_F(WorkRulesTest, AnEmptyCopyIsNoCall) {
  EXPECT_TRUE(device_->copy(Place::on_device(kTo), Place::on_host(nullptr), {0, 1}, stream_));
  EXPECT_TRUE(
      device_->copy(Place::on_device(kTo, 16), Place::on_device(kTo, 16), {16, 0}, stream_));
  EXPECT_TRUE(device_->fill(kTo, 0, 1, {0, 7}, stream_));
  EXPECT_TRUE(fake_.calls().empty());
}

TEST_F(WorkRulesTest, AFillWithValuesOfSeveralBytesIsOneCall) {
  const FillValue half(0x1234'5678, 2), word(0x1234'5678, 4);
  EXPECT_EQ(calls_of_fill(kTo, 0, {64, 1}, word), Calls{"cuMemsetD32Async 0x10000 0x12345678 16"});
  EXPECT_EQ(calls_of_fill(kTo, 512, {64, 2}, word), Calls{"cuMemsetD2D32Async"});
  EXPECT_EQ(calls_of_fill(kTo, 0, {64, 1}, half), Calls{"cuMemsetD32Async 0x10000 0x56785678 16"});
  EXPECT_EQ(calls_of_fill(kTo, 0, {62, 1}, half), Calls{"cuMemsetD16Async"});
  EXPECT_EQ(calls_of_fill(kTo + 2, 512, {64, 2}, half), Calls{"cuMemsetD2D16Async"});
}

TEST_F(WorkRulesTest, AFillUsesWordsWhereAddressAndLengthAllowIt) {
  EXPECT_EQ(calls_of_fill(kTo, 0, {64, 1}), Calls{"cuMemsetD32Async 0x10000 0xabababab 16"});
  EXPECT_EQ(calls_of_fill(kTo, 0, {63, 1}), Calls{"cuMemsetD8Async 0x10000 0xab 63"});
  EXPECT_EQ(calls_of_fill(kTo + 2, 0, {64, 1}), Calls{"cuMemsetD8Async 0x10002 0xab 64"});
  EXPECT_EQ(calls_of_fill(kTo, 512, {64, 2}), Calls{"cuMemsetD2D32Async"});
  EXPECT_EQ(calls_of_fill(kTo, 512, {63, 2}), Calls{"cuMemsetD2D8Async"});
  EXPECT_EQ(calls_of_fill(kTo, 513, {64, 2}), Calls{"cuMemsetD2D8Async"});
  EXPECT_EQ(
      calls_of_fill(kTo, kWide + 3, {64, 2}),
      (Calls{"cuMemsetD32Async 0x10000 0xabababab 16", "cuMemsetD32Async 0x11004 0xabababab 16"}));
}

}  // namespace
}  // namespace slate::cuda
