// A program with a kernel that faults:
//
//   offender wild|trap|misaligned|illegal|assert|stack|freed|spinning|jump
//
// It prints the error that the synchronization returns. Exit status 0 if there is one. `freed`
// reads memory that was freed while an earlier kernel ran. In `spinning` the other threads, and
// those of later kernels, wait for the one that faults. On an H100 `jump` never ends, also
// natively.
#undef NDEBUG
#include <cuda_runtime.h>

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

__device__ __noinline__ int deep(int level) {
  volatile int room[64];
  room[level & 63] = level;
  return level < 0 ? 0 : deep(level + 1) + room[(level + 1) & 63];
}

template <char kHow>
__global__ void offend(std::uintptr_t address, int* result) {
  if constexpr (kHow == 'w') *reinterpret_cast<int*>(address) = 1;
  if constexpr (kHow == 't') __trap();
  if constexpr (kHow == 'm') *reinterpret_cast<int*>(reinterpret_cast<char*>(result) + 1) = 1;
  // A barrier of 33 threads, which is no multiple of a warp.
  if constexpr (kHow == 'i') asm volatile("bar.sync 0, %0;" ::"r"(static_cast<int>(address) + 17));
  if constexpr (kHow == 'a') assert(result == nullptr);
  if constexpr (kHow == 's') *result = deep(0);
  if constexpr (kHow == 'f') {
    const volatile int* freed = reinterpret_cast<const int*>(address);
    for (unsigned i = threadIdx.x; *result == 0; i = i * 1664525u + 1013904223u)
      if (freed[i >> 9] == 77) *result = 1;
  }
  if constexpr (kHow == 'p') {
    volatile int* const told = result + 64;
    if (blockIdx.x == 1 && threadIdx.x == 5) {
      *reinterpret_cast<int*>(address) = 1;
      __threadfence();
      *told = 1;
    }
    while (*told == 0) {
    }
  }
  if constexpr (kHow == 'j') reinterpret_cast<void (*)()>(address)();
}

__global__ void take_a_while(volatile int* memory) {
  for (int i = 0; i < 200'000; ++i) memory[i & 255] = i;
}

constexpr std::size_t kFreedBytes = 32 << 20;  // offend<'f'> reads all of it

struct Way {
  const char* name;
  void (*kernel)(std::uintptr_t, int*);
};
const Way ways[] = {
    {"wild", offend<'w'>},    {"trap", offend<'t'>},     {"misaligned", offend<'m'>},
    {"illegal", offend<'i'>}, {"assert", offend<'a'>},   {"stack", offend<'s'>},
    {"freed", offend<'f'>},   {"spinning", offend<'p'>}, {"jump", offend<'j'>}};

/// Memory that goes once a kernel has ended, which runs now.
cudaError_t be_freed(int* memory, std::uintptr_t* address) {
  void* freed = nullptr;
  if (const cudaError_t error = cudaMalloc(&freed, kFreedBytes); error != cudaSuccess) return error;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  take_a_while<<<1, 1, 0, stream>>>(memory + 256);
  *address = reinterpret_cast<std::uintptr_t>(freed);
  return cudaFree(freed);
}

}  // namespace

int main(int count, char** arguments) {
  const Way* way = count > 1 ? nullptr : ways;
  for (const Way& each : ways) {
    if (count > 1 && std::strcmp(each.name, arguments[1]) == 0) way = &each;
  }
  if (way == nullptr) return 2;
  int* memory = nullptr;
  std::uintptr_t address = 0x10;
  cudaError_t error = cudaMalloc(&memory, 4096);
  if (error == cudaSuccess) error = cudaMemset(memory, 0, 4096);
  if (error == cudaSuccess && way->kernel == offend<'f'>) error = be_freed(memory, &address);
  if (error == cudaSuccess) {
    way->kernel<<<2, 64>>>(address, memory);
    // One that nobody in it tells.
    if (way->kernel == offend<'p'>) offend<'p'><<<1, 64>>>(address, memory);
    error = cudaDeviceSynchronize();
  }
  std::printf("%s: %s\n", way->name, cudaGetErrorName(error));
  return error == cudaSuccess ? 1 : 0;
}
