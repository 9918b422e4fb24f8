// The front for libcuda against a fake daemon: with a current context, and a kernel of a module.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "client/driver/front.h"
#include "tests/unit/client/fake_daemon.h"

namespace slate::test {

/// The primary context is retained and current.
class DriverFrontTest : public ::testing::Test {
 protected:
  DriverFrontTest()
      : directory(std::filesystem::temp_directory_path() /
                  ("slate-driver-test-" + std::to_string(::getpid()))),
        daemon(std::make_unique<FakeDaemon>(directory)) {
    ::setenv("SLATE_RUNTIME_DIR", directory.c_str(), 1);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, kCode), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
  }
  ~DriverFrontTest() override {
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    daemon.reset();
    std::filesystem::remove_all(directory);
  }

  CUresult launch(unsigned blocks, unsigned threads = 32, CUstream stream = nullptr) {
    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr);
  }
  static CUstream non_blocking_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
  }
  static CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  /// Waits until the daemon has taken all that was sent.
  void wait_for_daemon() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  }

  const std::string directory;
  std::unique_ptr<FakeDaemon> daemon;
  CUcontext context = nullptr;
  CUfunction function = nullptr;  // with one parameter of 8 bytes
  std::uint64_t argument = 0;
  void* arguments[1] = {&argument};

 private:
  static constexpr char kCode[] = ".version 9.0\n.target sm_75\n.address_size 64\n";
};

}  // namespace slate::test
