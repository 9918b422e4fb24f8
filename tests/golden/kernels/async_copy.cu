// Copies to shared memory that run beside the code (cp.async).
#include <cuda_pipeline.h>

extern "C" __global__ void async_copy(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ alignas(16) unsigned line[2][256];
  const unsigned base = blockIdx.x * 256;
  if (threadIdx.x < 64) {
    for (unsigned part = 0; part < 2; ++part) {
      const unsigned from = (base + part * 256 + threadIdx.x * 4) % (count & ~3u);
      __pipeline_memcpy_async(&line[part][threadIdx.x * 4], &in[from], 16);
      __pipeline_commit();
    }
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  const unsigned i = base + threadIdx.x;
  if (i < count) out[i] = line[0][threadIdx.x] + line[1][255 - threadIdx.x];
}
