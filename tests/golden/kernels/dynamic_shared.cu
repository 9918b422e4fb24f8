// Dynamic and static shared memory together.
extern "C" __global__ void dynamic_shared(const unsigned* in, unsigned* out, unsigned count) {
  extern __shared__ unsigned line[];
  __shared__ unsigned first;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  line[threadIdx.x] = i < count ? in[i] : 0;
  if (threadIdx.x == 0) first = blockIdx.x;
  __syncthreads();
  if (i < count) out[i] = line[blockDim.x - 1 - threadIdx.x] + first;
}
