/* C, with the kernel in a file of its own. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

cudaError_t launch_scale(float* values, float factor, int count);

int main(void) {
  const int count = 1000;
  const size_t bytes = (size_t)count * sizeof(float);
  float* host = malloc(bytes);
  float* memory = NULL;
  struct cudaDeviceProp properties;
  for (int i = 0; i < count; ++i) host[i] = (float)i;
  printf("%s\n", cudaGetErrorName(cudaGetDeviceProperties(&properties, 0)));
  printf("warp %d\n", properties.warpSize);
  printf("%s\n", cudaGetErrorName(cudaMalloc((void**)&memory, bytes)));
  printf("%s\n", cudaGetErrorName(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice)));
  printf("%s\n", cudaGetErrorName(launch_scale(memory, 0.5f, count)));
  printf("%s\n", cudaGetErrorName(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost)));
  printf("%g %g\n", host[1], host[999]);
  printf("%s\n", cudaGetErrorName(cudaFree(memory)));
  free(host);
  return 0;
}
