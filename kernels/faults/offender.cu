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

template <char kHow>
__global__ void offend(std::uintptr_t address, int* result) {
  if constexpr (kHow == 'w') *reinterpret_cast<int*>(address) = 1;
  if constexpr (kHow == 't') __trap();
  if constexpr (kHow == 'm') *reinterpret_cast<int*>(reinterpret_cast<char*>(result) + 1) = 1;
  if constexpr (kHow == 'a') assert(result == nullptr);
  if constexpr (kHow == 's') *result = deep(0);
  if constexpr (kHow == 'j') reinterpret_cast<void (*)()>(address)();
}

struct Way {
  const char* name;
  void (*kernel)(std::uintptr_t, int*);
};
const Way ways[] = {{"wild", offend<'w'>},   {"trap", offend<'t'>},  {"misaligned", offend<'m'>},
                    {"assert", offend<'a'>}, {"stack", offend<'s'>}, {"jump", offend<'j'>}};

}  // namespace

int main(int count, char** arguments) {
  const Way* way = count > 1 ? nullptr : ways;
  for (const Way& each : ways) {
    if (count > 1 && std::strcmp(each.name, arguments[1]) == 0) way = &each;
  }
  if (way == nullptr) return 2;
  int* memory = nullptr;
  cudaError_t error = cudaMalloc(&memory, 4096);
  if (error == cudaSuccess) {
    way->kernel<<<2, 64>>>(std::uintptr_t{0x10}, memory);
    error = cudaDeviceSynchronize();
  }
  std::printf("%s: %s\n", way->name, cudaGetErrorName(error));
  return error == cudaSuccess ? 1 : 0;
}
