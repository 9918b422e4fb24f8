// The driver table without a driver: what is missing is named, and every fault is told from every
// refusal.
#include "device/cuda/driver.h"

#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "fake_driver.h"

namespace slate::cuda {
namespace {

TEST(DriverTest, AMissingLibraryIsNamed) {
  const auto driver = load_driver("libcuda-that-is-not-there.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(driver.error().message.find("libcuda-that-is-not-there.so.1"), std::string::npos);
}

TEST(DriverTest, ALibraryThatLacksAFunctionIsRefusedWithBothNames) {
  const auto driver = load_driver("libc.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(driver.error().message.find("libc.so.6"), std::string::npos);
  EXPECT_NE(driver.error().message.find("cuInit"), std::string::npos);
}

TEST(DriverTest, OpeningWithoutAGpuSaysWhichLibraryItNeeds) {
  if (driver_finds_a_gpu()) GTEST_SKIP() << "there is a GPU";
  const auto opened = open_cuda_device(0);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().code == ErrorCode::kNotSupported ||
              opened.error().code == ErrorCode::kUnavailable)
      << error_name(opened.error().code);
  EXPECT_NE(opened.error().message.find("libcuda.so.1"), std::string::npos)
      << opened.error().message;
}

TEST(DriverTest, TheSymbolsAreTheVersionsThatTheHeaderDescribes) {
  const Driver driver;
  EXPECT_STREQ(driver.cuMemGetInfo.name, "cuMemGetInfo_v2");
  EXPECT_STREQ(driver.cuMemHostRegister.name, "cuMemHostRegister_v2");
  EXPECT_STREQ(driver.cuLaunchKernel.name, "cuLaunchKernel");
}

TEST(DriverTest, FaultsOfTheGpuAreSticky) {
  for (const CUresult result :
       {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_ASSERT, CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
        CUDA_ERROR_CONTEXT_IS_DESTROYED}) {
    EXPECT_TRUE(is_sticky(error_code(result))) << result;
  }
}

TEST(DriverTest, RefusalsAreNotSticky) {
  for (const CUresult result :
       {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_HANDLE,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_READY,
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_UNKNOWN}) {
    EXPECT_FALSE(is_sticky(error_code(result))) << result;
  }
}

TEST(DriverTest, AFailureIsDescribedByCallNameAndText) {
  const FakeDriver fake;
  const Error error = describe(fake.driver(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate");
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.message, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (as the test asked)");
}

}  // namespace
}  // namespace slate::cuda
