// What nvcc's host code calls before main(): fat binaries, kernels and variables are noted, nothing
// is unpacked and no daemon is looked for. Also the stack of launch configurations between
// <<<...>>> and the stub.
#include <algorithm>
#include <array>
#include <cstring>

#include "client/cudart/front.h"
#include "client/session/say.h"

namespace slate::cudart {
namespace {

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

/// Configurations nest when a launch's arguments launch kernels themselves: one level in practice.
/// Arguments that throw leave theirs behind, and nobody says so. Hence a ring: the oldest make
/// room.
constexpr unsigned kMostNested = 16;
struct ConfigurationStack {
  std::array<CallConfiguration, kMostNested> items;
  unsigned next = 0;   // counts up, and wraps
  unsigned count = 0;  // of those that are there
};
constinit thread_local ConfigurationStack configurations{};

client::FatBinary* binary_of(void** handle) {
  return reinterpret_cast<client::FatBinary*>(handle);
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  void** handle = nullptr;
  answer([&]() -> Answer {
    handle = reinterpret_cast<void**>(Process::get().code().add_binary(wrapper));
    return {};
  });
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (handle == nullptr) return;
  answer([&]() -> Answer {
    Process::get().code().remove_binary(binary_of(handle), Process::get().current());
    return {};
  });
}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  if (handle == nullptr) return;
  answer([&]() -> Answer {
    Process::get().code().add_kernel(binary_of(handle), host, name);
    return {};
  });
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t size,
                       int, int) {
  if (handle == nullptr) return;
  answer([&]() -> Answer {
    Process::get().code().add_variable(binary_of(handle), host, name, size);
    return {};
  });
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                              std::size_t size, int, int) {
  if (handle == nullptr) return;
  answer([&]() -> Answer {
    Process::get().code().add_managed(binary_of(handle), host, name, size);
    return {};
  });
}

// Before the host's first use of a __managed__ variable. A program without a session goes on with
// plain memory: it hears of the trouble from its first call.
char __cudaInitModule(void** handle) {
  if (handle == nullptr) return 0;
  client::Code& code = Process::get().code();
  const cudaError_t loaded = with_device(
      [&](Session& session) -> Answer { return code.load(session, *binary_of(handle)); });
  if (loaded != cudaSuccess) code.detach_managed(nullptr);
  return loaded == cudaSuccess ? 1 : 0;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     CUstream_st* stream) {
  configurations.items[configurations.next++ % kMostNested] = {grid, block, shared, stream};
  configurations.count = std::min(configurations.count + 1, kMostNested);
  return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations.count == 0) return remember(cudaErrorMissingConfiguration);
  --configurations.count;
  const CallConfiguration& top = configurations.items[--configurations.next % kMostNested];
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return answer([&]() -> Answer {
    if (kernel == nullptr) return deny(cudaErrorInvalidValue);
    auto found = kernel_of(function);
    if (!found) return deny(cudaErrorInvalidDeviceFunction);
    *kernel = reinterpret_cast<cudaKernel_t>(*found);
    return {};
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return __cudaGetKernel(kernel, function);
}

}  // extern "C"
