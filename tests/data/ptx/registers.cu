// Loops, shared memory, divergent branches, switch, vector loads: ordinary kernels.
extern "C" {
__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__global__ void __launch_bounds__(256, 2) saxpy(float a, const float4* __restrict__ x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i], w = y[i];
  y[i] = make_float4(a * v.x + w.x, a * v.y + w.y, a * v.z + w.z, a * v.w + w.w);
}
__global__ void reduce(const double* in, double* out, int n) {
  __shared__ double sums[256];
  extern __shared__ int scratch[];
  double sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i] * weights[i & 7];
  sums[threadIdx.x] = sum;
  scratch[threadIdx.x] = __popc(n);
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, sums[0] + scratch[1]);
}
__global__ void choose(int* p, int x, short h, char c, unsigned long long q) {
  switch (x) {
    case 0: p[0] = 1; break;
    case 1: p[3] = 2 * x + h; break;
    case 2: p[4] ^= 7; break;
    case 3: p[5] = c; break;
    case 4: p[2] = __popc(x); break;
    case 5: p[9] = __clz(x); break;
    case 6: p[100] = clock64(); break;
    case 7: p[11] = __ffsll(q); break;
    default: p[1] = __byte_perm(x, p[7], 0x5140);
  }
  p[20] = __shfl_down_sync(~0u, x, 4) + __ballot_sync(~0u, x > 2);
}
}
