// All three dimensions of grid and block.
extern "C" __global__ void grid3d(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned i = (z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x;
  if (i < count) out[i] = in[i] + x * 10000 + y * 100 + z;
}
