// What the tests share that drive an engine's streams by hand: a device whose streams the test
// steps, a module of its kernels, and a completer.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "daemon/engine/completer.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {

/// With work that is submitted at once, and with launches in rows.
class StreamFixture : public testing::TestWithParam<bool> {
 protected:
  StreamFixture()
      : module_(*device_.load_module(device::ImageKind::kPtx, image_)),
        completer_(std::make_unique<Completer>(device_)) {}
  /// What a test has made on the device is gone by now.
  ~StreamFixture() override {
    completer_.reset();
    device_.unload_module(module_);
    EXPECT_TRUE(device_.holds_nothing());
  }

  /// Lets all work run to its end, which the destructor of a test does first.
  void end_work() {
    device_.hold(false);
    device_.release_spinning();
    EXPECT_TRUE(group_.wait_empty(kLong));
  }
  void run_dry(device::Stream stream) {
    while (device_.step(stream)) {
    }
  }
  void wait_idle() { ASSERT_TRUE(group_.wait_empty(kLong)); }

  device::LaunchSpec launch_of(const char* kernel) {
    return {.function = *device_.find_function(module_, kernel), .parameters = parameter_};
  }
  static std::string at_stream(const std::string& kernel, device::Stream stream) {
    return kernel + "@" + std::to_string(static_cast<std::uint64_t>(stream));
  }

  static constexpr auto kLong = std::chrono::seconds(60);
  const std::array<std::byte, 1> image_{std::byte{'x'}};
  const std::array<std::byte, 8> parameter_{};
  FakeDevice device_;
  device::Module module_;
  Completer::Group group_;
  std::atomic<ErrorCode> fault_{ErrorCode::kNone};
  std::unique_ptr<Completer> completer_;
};

}  // namespace slate::daemon
