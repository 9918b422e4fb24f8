// Fixtures of the front against a fake daemon.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "client/session/fatbin.h"
#include "tests/unit/client/fake_daemon.h"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);
}

namespace slate::test {

/// A fat binary with one plain PTX entry.
struct FatBinary {
  struct {
    std::uint32_t magic = client::kContainerMagic;
    std::uint16_t version = 1, header = 16;
    std::uint64_t bytes = 64 + 16;
    std::uint16_t kind = 1, tag = 0x0101;
    std::uint32_t entry_header = 64;
    std::uint64_t payload = 16;
    std::uint32_t packed = 0, options = 0;
    std::uint16_t minor = 0, major = 9;
    std::uint32_t architecture = 75;
    std::uint64_t name = 0, flags = 0x11, zero = 0, unpacked = 0;
    char text[16] = ".version 9.0";
  } container;
  client::FatBinaryWrapper wrapper;
};
static_assert(sizeof(FatBinary::container) == 16 + 64 + 16);

inline void host_kernel() {}
inline void plain_function() {}
inline char host_variable[64];

inline const void* address(void (*function)()) {
  return reinterpret_cast<const void*>(function);
}

/// A value of an enum of CUDA's that it does not have.
template <typename Enum>
Enum unknown(int number) {
  Enum value;
  static_assert(sizeof(value) == sizeof(number));
  std::memcpy(&value, &number, sizeof(value));
  return value;
}

/// A fake daemon, and no session with it yet.
class FrontTest : public ::testing::Test {
 protected:
  FrontTest()
      : directory(std::filesystem::temp_directory_path() /
                  ("slate-cudart-test-" + std::to_string(::getpid()))),
        daemon(std::make_unique<FakeDaemon>(directory)) {
    ::setenv("SLATE_RUNTIME_DIR", directory.c_str(), 1);
    cudaDeviceReset();
    cudaGetLastError();
  }
  ~FrontTest() override {
    cudaDeviceReset();
    daemon.reset();
    std::filesystem::remove_all(directory);
  }

  const std::string directory;
  std::unique_ptr<FakeDaemon> daemon;
};

/// With one kernel and one variable of the program registered.
class CudartTest : public FrontTest {
 protected:
  CudartTest() {
    binary.wrapper.data = &binary.container;
    handle = __cudaRegisterFatBinary(&binary.wrapper);
    __cudaRegisterFunction(handle, static_cast<const char*>(address(host_kernel)), nullptr,
                           "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle, host_variable, nullptr, "variable", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
  }
  ~CudartTest() override { __cudaUnregisterFatBinary(handle); }

  cudaError_t launch(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
    void* argument = nullptr;
    void* arguments[] = {&argument};
    return cudaLaunchKernel(address(host_kernel), grid, block, arguments, shared, stream);
  }

  FatBinary binary;
  void** handle = nullptr;
};

}  // namespace slate::test
