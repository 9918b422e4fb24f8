// A warp whose lanes return one by one while the others shuffle on the full mask: no worker form,
// as lanes that wait for the next block would be waited for.
extern "C" __global__ void early_return_shuffle(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned value = in[i];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  out[i] = value;
}
