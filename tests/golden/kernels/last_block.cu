// The block that finishes last adds up what the others left.
__device__ unsigned finished;

extern "C" __global__ void last_block(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ bool is_last;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i] + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  unsigned sum = 0;
  for (unsigned k = 1; k < count; ++k) sum += static_cast<volatile unsigned*>(out)[k];
  out[0] = sum;
}
