// FakeGpuTest: a CudaDevice on a FakeDriver, with the opening calls already forgotten.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "device/cuda/cuda_device_impl.h"
#include "fake_driver.h"

namespace slate::cuda {

class FakeGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = CudaDevice::open(fake_.driver(), 0);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
    const auto stream = device_->create_stream(0);
    ASSERT_TRUE(stream) << stream.error().message;
    stream_ = *stream;
    fake_.forget_calls();
  }

  FakeDriver fake_;
  std::unique_ptr<device::Device> device_;
  device::Stream stream_{};
};

}  // namespace slate::cuda
