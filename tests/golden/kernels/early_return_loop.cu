// Threads return before a loop, and inside it from within an `if`; the loop has work ahead of its
// first barrier, and an inner loop with barriers: late exits, parked threads entering loops where
// they begin.
extern "C" __global__ void early_return_loop(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned cells[128];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + t;
  cells[t] = t;
  if (i >= count) return;
  unsigned value = in[i];
  const unsigned rounds = 2 + blockIdx.x % 3;
#pragma unroll 1
  for (unsigned round = 0; round < rounds; ++round) {
    value = value * 3 + round;
    if (value % 3 == 0) {
      value ^= in[i / 2];
      if (value % 5 == round) {
        out[i] = value;
        return;
      }
      value += 7;
    }
    cells[t] = value;
#pragma unroll 1
    for (unsigned distance = 64; distance >= 8 << round; distance /= 2) {
      __syncthreads();
      const unsigned other = cells[(t + distance) % blockDim.x];
      __syncthreads();
      value = value * 5 + other;
      cells[t] = value;
    }
    __syncthreads();
    if (value % 11 == 0) {
      out[i] = ~value;
      return;
    }
  }
  out[i] = value;
}
