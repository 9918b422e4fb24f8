// Faults of kernels. One poisons CUDA for its whole process, so each happens in a child: a
// "threadsafe" death test runs this binary anew, up to the statement under test, without a fork of
// a process that uses CUDA.
#include <cstdlib>
#include <iostream>

#include "gpu_fixture.h"

namespace slate::cuda {
namespace {

class GpuFaultTest : public GpuTest {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  }
  void TearDown() override {}  // nothing was opened in this process

  /// Opens the device, runs `name`, says on stderr what the queries and the calls after it report,
  /// and ends the process.
  [[noreturn]] void run_and_report(const std::string& name) {
    GpuTest::SetUp();
    if (testing::Test::HasFatalFailure()) std::_Exit(2);
    const device::Function function = kernel(name);
    if (!device_->launch({.function = function}, stream_)) std::_Exit(3);
    const auto finished = wait_for(stream_);
    std::cerr << "first " << (finished ? "none" : error_name(finished.error().code)) << ", lost "
              << device_->lost();
    const auto again = device_->create_event(false);
    std::cerr << ", then " << (again ? "none" : error_name(again.error().code)) << std::endl;
    std::_Exit(0);
  }
};

TEST_F(GpuFaultTest, AStrayWriteIsAnIllegalAddressAndLosesTheDevice) {
  EXPECT_EXIT(run_and_report("stray"), testing::ExitedWithCode(0), "first IllegalAddress, lost 1");
}

TEST_F(GpuFaultTest, ATrapIsAFailedLaunchAndLosesTheDevice) {
  EXPECT_EXIT(run_and_report("stop"), testing::ExitedWithCode(0), "first LaunchFailed, lost 1");
}

TEST_F(GpuFaultTest, AHealthyKernelLosesNothing) {
  EXPECT_EXIT(run_and_report("count"), testing::ExitedWithCode(0), "first none, lost 0, then none");
}

TEST_F(GpuFaultTest, ADeviceThatIsLostCanStillBeDestroyed) {
  const auto destroy_after_fault = [this] {
    GpuTest::SetUp();
    if (!device_->launch({.function = kernel("stray")}, stream_)) std::_Exit(3);
    if (wait_for(stream_)) std::_Exit(4);
    device_.reset();
    std::cerr << "destroyed" << std::endl;
    std::_Exit(0);
  };
  EXPECT_EXIT(destroy_after_fault(), testing::ExitedWithCode(0), "destroyed");
}

}  // namespace
}  // namespace slate::cuda
