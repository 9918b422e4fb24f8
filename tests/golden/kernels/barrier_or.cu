// A barrier that reduces: __syncthreads_or, __syncthreads_count.
extern "C" __global__ void barrier_or(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = i < count ? in[i] : 0;
  unsigned rounds = 0;
  while (__syncthreads_or(value > 1000)) {
    value /= 3;
    ++rounds;
  }
  const int small = __syncthreads_count(value < 100);
  if (i < count) out[i] = value + rounds * 1000 + small;
}
