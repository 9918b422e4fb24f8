// The other half of linked_first.cu.
#include <cstdio>

__device__ int calls = 3;

static __device__ int bonus = 7;

template <typename T>
__device__ T twice(T value) {
  static __device__ int hits;
  atomicAdd(&hits, 1);
  return value * 2;
}

__device__ int square_plus(int value) {
  return value * value + bonus + twice(value);
}

static __global__ void second(int* out) {
  out[0] = calls;
}

void run_second(int* memory) {
  second<<<1, 1>>>(memory);
  int seen = 0;
  cudaMemcpy(&seen, memory, sizeof(seen), cudaMemcpyDeviceToHost);
  int copied = 0;
  cudaMemcpyFromSymbol(&copied, calls, sizeof(copied));
  std::printf("second %d %d\n", seen, copied);
}
