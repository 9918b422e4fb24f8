// The usual reduction: shuffles in all warps, then in the first one alone.
extern "C" __global__ void warp_sum(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned sums[32];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + t;
  unsigned value = i < count ? in[i] : 0;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
  if (t % 32 == 0) sums[t / 32] = value;
  __syncthreads();
  if (t < 32) {
    value = t < blockDim.x / 32 ? sums[t] : 0;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
    if (t == 0) out[blockIdx.x] = value;
  }
}
