// Half precision, bfloat16, tensor cores, textures, double mathematics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void halves(__half2* h, double* d, __nv_bfloat162* q) {
  *h = __hfma2(*h, h[1], h2exp(h[2]));
  *d = exp(d[1]) + sqrt(d[4]) / d[5];
  *q = __hadd2(q[1], __hmul2(q[2], q[3]));
}
__global__ void multiply(half* a, half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float* o) {
  o[0] = tex2D<float>(t, 1.f, 2.f);
  float4 v = tex1Dfetch<float4>(t, 3);
  o[1] = v.x + v.w;
  surf2Dwrite(1.f, s, 4, 5);
  __nanosleep(100);
}
