// The kernel of c_program.c.
__global__ void scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

extern "C" cudaError_t launch_scale(float* values, float factor, int count) {
  scale<<<(count + 255) / 256, 256>>>(values, factor, count);
  return cudaGetLastError();
}
