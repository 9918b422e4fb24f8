// printf from a kernel.
#include <cstdio>

extern "C" __global__ void print(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i];
  if (threadIdx.x == 0 && blockIdx.x % 8 == 0) printf("block %u of %u\n", blockIdx.x, gridDim.x);
}
