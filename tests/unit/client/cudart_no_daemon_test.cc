// What the shared library does before, and without, a daemon.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

extern "C" int cudaGLSetGLDevice();

namespace {

/// Points libslate at a directory where nobody listens, with no session left from other tests.
class NoDaemonTest : public ::testing::Test {
 protected:
  NoDaemonTest() {
    ::setenv("SLATE_RUNTIME_DIR", "/nonexistent/slate", 1);
    cudaDeviceReset();
    cudaGetLastError();
  }
  ~NoDaemonTest() override { cudaDeviceReset(); }
};

TEST_F(NoDaemonTest, EveryCallThatNeedsADeviceFailsToInitialise) {
  void* pointer = nullptr;
  int count = 7;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorInitializationError);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInitializationError);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorInitializationError);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.rfind("slate: ", 0), 0u) << said;
  EXPECT_NE(said.find("slated"), said.npos) << "how to start one: " << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "said once: " << said;
}

TEST_F(NoDaemonTest, TheLastErrorIsKeptUntilItIsRead) {
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorInitializationError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInitializationError);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInitializationError);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(NoDaemonTest, VersionsNeedNoDevice) {
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
  version = 0;
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 13000);
}

TEST_F(NoDaemonTest, ACallThatIsMissingSaysSoOnceByName) {
  testing::internal::CaptureStderr();
  // Of a graphics API's header, which no part of slate includes.
  EXPECT_EQ(cudaGLSetGLDevice(), int{cudaErrorNotSupported});
  EXPECT_EQ(cudaGLSetGLDevice(), int{cudaErrorNotSupported});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "slate: cudaGLSetGLDevice is not supported yet: no graphics API shares memory with "
            "slate\n");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(ErrorFunctionsTest, NamesAndTextsAreCudas) {
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

}  // namespace
