// A block of 1024 threads at the limit of 64 registers each.
extern "C" __global__ void __launch_bounds__(1024, 1)
    registers(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned kept[56];
#pragma unroll
  for (unsigned k = 0; k < 56; ++k) kept[k] = in[(i + k * 37) % count];
  __syncthreads();
#pragma unroll
  for (unsigned round = 0; round < 3; ++round) {
#pragma unroll
    for (unsigned k = 0; k < 56; ++k) kept[k] = kept[k] * kept[(k + 5) % 56] + kept[(k + 11) % 56];
  }
  unsigned sum = 0;
#pragma unroll
  for (unsigned k = 0; k < 56; ++k) sum ^= kept[k] + k;
  if (i < count) out[i] = sum;
}
