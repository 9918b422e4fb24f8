// Compiled with -rdc=true: calls and reads across two files, with names that both files have.
#include <cstdio>

extern __device__ int square_plus(int value);
extern __device__ int calls;
void run_second(int* memory);

static __device__ int bonus = 5;

template <typename T>
__device__ T twice(T value) {
  static __device__ int hits;
  atomicAdd(&hits, 1);
  return value * 2;
}

__global__ void first(int* out) {
  out[threadIdx.x] = square_plus(threadIdx.x) + bonus + twice(1);
  atomicAdd(&calls, 1);
}

int main() {
  int* memory = nullptr;
  cudaMalloc(&memory, 32 * sizeof(int));
  first<<<1, 32>>>(memory);
  int out[32];
  cudaMemcpy(out, memory, sizeof(out), cudaMemcpyDeviceToHost);
  std::printf("first %d %d %d\n", out[0], out[5], out[31]);
  run_second(memory);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
