// What the fat binaries of fatbin_test.cc hold.
__device__ int counter[16];
__global__ void scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + counter[i % 16];
}
