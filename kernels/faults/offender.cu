// A program with a kernel that faults:
//
//   offender wild|trap|misaligned|assert|stack|jump
//
// It prints the error that the synchronization returns. Exit status 0 if there is one. On an H100
// `jump` never ends, also natively.
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

__global__ void offend(char how, std::uintptr_t address, int* result) {
  switch (how) {
    case 'w':
      *reinterpret_cast<int*>(address) = 1;
      break;
    case 't':
      __trap();
      break;
    case 'm':
      *reinterpret_cast<int*>(reinterpret_cast<char*>(result) + 1) = 1;
      break;
    case 'a':
      assert(result == nullptr);
      break;
    case 's':
      *result = deep(0);
      break;
    case 'j':
      reinterpret_cast<void (*)()>(address)();
      break;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* const ways[] = {"wild", "trap", "misaligned", "assert", "stack", "jump"};
  const char* const way = count > 1 ? arguments[1] : "wild";
  char how = 0;
  for (const char* each : ways) {
    if (std::strcmp(each, way) == 0) how = each[0];
  }
  if (how == 0) return 2;
  int* memory = nullptr;
  cudaError_t error = cudaMalloc(&memory, 4096);
  if (error == cudaSuccess) {
    offend<<<2, 64>>>(how, std::uintptr_t{0x10}, memory);
    error = cudaDeviceSynchronize();
  }
  std::printf("%s: %s\n", way, cudaGetErrorName(error));
  return error == cudaSuccess ? 1 : 0;
}
