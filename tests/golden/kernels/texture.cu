// Reads through a texture object: its number is a parameter like any other.
extern "C" __global__ void texture(cudaTextureObject_t in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[i] = tex1Dfetch<unsigned>(in, static_cast<int>(i)) * 3 + gridDim.x;
}
