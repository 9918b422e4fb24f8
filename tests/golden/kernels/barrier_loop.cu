// __syncthreads in a loop whose length is the same for all threads: a tree in shared memory.
extern "C" __global__ void barrier_loop(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned sums[256];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + t;
  sums[t] = i < count ? in[i] : 0;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (t < width) sums[t] += sums[t + width] * (blockIdx.x + 1);
    __syncthreads();
  }
  if (i < count) out[i] = sums[0] + sums[t];
}
