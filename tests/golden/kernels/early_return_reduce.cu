// Threads that have returned do not count at barriers that reduce: in a worker those parked
// contribute what changes nothing.
extern "C" __global__ void early_return_reduce(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned value = in[i];
  if (value % 4 == 0) {
    out[i] = value;
    return;
  }
  value += __syncthreads_count(value % 3 == 0);
  value = value * 2 + (__syncthreads_and(value % 64 != 1) != 0);
  if (value % 7 == 0) return;
  while (__syncthreads_or(value % 16 > 3)) value = value % 16 > 3 ? value / 2 : value;
  out[i] = value;
}
