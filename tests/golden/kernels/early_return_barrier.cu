// Some threads return, and those who stay go on to barriers: late exits.
extern "C" __global__ void early_return_barrier(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned cells[128];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + t;
  if (i >= count) return;
  cells[t] = in[i];
  const unsigned rounds = 3 + blockIdx.x % 3;
  for (unsigned round = 0; round < rounds; ++round) {
    __syncthreads();
    const unsigned left = cells[t == 0 ? 0 : t - 1];
    if ((cells[t] + round) % 7 == 0) {
      out[i] = left + round;
      return;
    }
    __syncthreads();
    cells[t] = cells[t] * 5 + 1 + (round & 1) * 3;
  }
  out[i] = cells[t];
}
