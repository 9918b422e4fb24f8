// Compiled with -legacy-launch-seq: launches as nvcc 12 wrote them, through cudaLaunchKernel.
#include <cstdio>

template <typename T>
__global__ void fill(T* values, T value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int main() {
  float* memory = nullptr;
  cudaMalloc(&memory, 128 * sizeof(float));
  fill<<<4, 32>>>(memory, 2.5f);
  float host[128];
  cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
  fill<<<0, 32>>>(memory, 1.0f);
  std::printf("%g %g %s\n", host[0], host[127], cudaGetErrorName(cudaGetLastError()));
}
