// Those who leave read a constant that is in the table for them only.
__constant__ unsigned table[96] = {1, 4, 9, 16, 25, 36, 49, 64};

extern "C" __global__ void early_return_table(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned s[96];
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) % count;
  const unsigned limit = count % 32 + 16;
  const unsigned value = in[i];
  unsigned* sum = out + i;
  if (threadIdx.x >= limit) {
    atomicAdd(sum, table[threadIdx.x - limit]);
    return;
  }
  s[threadIdx.x] = value;
  __syncthreads();
  atomicAdd(sum, s[0] + value);
}
