// Arrays on a driver made of fakes: what is called, and what a failure leaves behind.
#include "device/cuda/arrays.h"

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

using ArraysTest = FakeGpuTest;

ArraySpec floats(ArrayExtent extent, std::uint32_t levels = 0) {
  return {{ChannelKind::kFloat, 32, 1, 0}, extent, 0, levels};
}

TEST_F(ArraysTest, NewArraysAreFilledWithZerosBeforeTheyAreGivenOut) {
  const auto array = device_->create_array(floats({1024, 1024, 0}));
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(fake_.count("cuArray3DCreate"), 1u);
  EXPECT_EQ(fake_.count("cuMemcpy3DAsync"), 2u);  // of 2 MiB of zeros each
  EXPECT_EQ(fake_.calls().back(), "cuStreamSynchronize");
  device_->destroy_array(*array);
  EXPECT_EQ(fake_.calls().back(), "cuArrayDestroy");
}

TEST_F(ArraysTest, OthersMakeRoomForWhatClearsNewMemory) {
  int begun = 0;
  int ended = 0;
  device_->set_stall_hooks({[&] {
                              EXPECT_EQ(fake_.count("cuStreamSynchronize"), 0);
                              ++begun;
                            },
                            [&] {
                              EXPECT_GT(fake_.count("cuStreamSynchronize"), 0u);
                              ++ended;
                            }});
  const device::AddressRange range{std::uint64_t{1} << 40, device_->granularity()};
  ASSERT_TRUE(device_->map(range));
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 1);
  ASSERT_TRUE(device_->unmap(range));
  fake_.forget_calls();
  // The first array makes the zeros that it is filled with, within its own call.
  const auto array = device_->create_array(floats({64, 64, 0}));
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 2);
  device_->set_stall_hooks({});
  device_->destroy_array(*array);
}

TEST_F(ArraysTest, EveryLevelIsFilled) {
  const auto array = device_->create_array(floats({64, 64, 0}, 7));
  ASSERT_TRUE(array);
  EXPECT_EQ(fake_.count("cuMemcpy3DAsync"), 7u);
  device_->destroy_array(*array);
  EXPECT_EQ(fake_.calls().back(), "cuMipmappedArrayDestroy");
}

TEST_F(ArraysTest, AnArrayThatCannotBeFilledIsDestroyed) {
  fake_.fail("cuMemcpy3DAsync", CUDA_ERROR_INVALID_VALUE);
  const auto array = device_->create_array(floats({64, 64, 0}));
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(fake_.count("cuArrayDestroy"), 1u);
}

TEST_F(ArraysTest, WhereThereIsNoMemoryNothingIsLeft) {
  fake_.fail("cuArray3DCreate", CUDA_ERROR_OUT_OF_MEMORY);
  const auto array = device_->create_array(floats({64, 64, 0}));
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(fake_.count("cuArrayDestroy"), 0u);
}

TEST_F(ArraysTest, ALevelThatIsNotThereIsRefused) {
  const auto array = device_->create_array(floats({64, 64, 0}, 2));
  ASSERT_TRUE(array);
  const auto stream = *device_->create_stream(0);
  const auto done =
      device_->copy(Place::in_array(*array, 2), Place::in_array(*array), {4, 1, 1}, stream);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidValue);
  TextureSpec spec;
  spec.resource.array = static_cast<std::uint64_t>(*array);
  spec.resource.level = 2;
  EXPECT_FALSE(device_->create_texture(spec, {}));
  device_->destroy_stream(stream);
  device_->destroy_array(*array);
}

}  // namespace
}  // namespace slate::cuda
