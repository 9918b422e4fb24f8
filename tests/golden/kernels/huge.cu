// Made for grids of more than 2^32 blocks: few of them write.
extern "C" __global__ void huge(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned long long block =
      blockIdx.x + static_cast<unsigned long long>(gridDim.x) * blockIdx.y;
  const unsigned long long stride =
      static_cast<unsigned long long>(gridDim.x) * gridDim.y / 1000 + 1;
  if (threadIdx.x != 0 || block % stride != 0) return;
  const unsigned i = static_cast<unsigned>(block / stride);
  if (i < count) out[i] = in[i] + blockIdx.y + 1;
}
