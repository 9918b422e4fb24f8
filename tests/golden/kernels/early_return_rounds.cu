// Threads leave a loop in which a condition of the whole block decides whether there is a barrier.
// Where there is none, nobody would tell a thread that waits for the others' next barrier that all
// have left: the kernel drains.
extern "C" __global__ void early_return_rounds(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned s[128];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned rounds = i < count ? in[i] % 7 : 3;
  unsigned value = i;
#pragma unroll 1
  for (unsigned round = 0; round < rounds; ++round) {
    if (count < 7) {
      s[threadIdx.x] = value;
      __syncthreads();
      value += s[threadIdx.x ^ 1];
      __syncthreads();
    }
    value = value * 3 + round;
  }
  if (i < count) out[i] = value;
}
