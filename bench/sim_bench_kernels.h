// The kernels of sim_bench.cc as PTX, made by `nvcc -ptx -arch=compute_90 -O3` from this CUDA C++:
//
//   extern "C" __global__ void fma_loop(float* out, int rounds) {
//     float a = threadIdx.x, b = 1.0f, c = 2.0f, d = 3.0f;
//     for (int i = 0; i < rounds; ++i) {
//       a = a * 0.5f + 1.0f; b = b * 0.5f + 1.0f; c = c * 0.5f + 1.0f; d = d * 0.5f + 1.0f;
//     }
//     out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
//   }
//   extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b,
//                                      float* c, int n) {
//     for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i]
//     = a[i] + b[i];
//   }
//   extern "C" __global__ void matrix_multiply(const float* a, const float* b, float* c, int n) {
//     __shared__ float as[16][16], bs[16][16];
//     int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
//     float sum = 0;
//     for (int t = 0; t < n / 16; ++t) {
//       as[threadIdx.y][threadIdx.x] = a[y * n + t * 16 + threadIdx.x];
//       bs[threadIdx.y][threadIdx.x] = b[(t * 16 + threadIdx.y) * n + x];
//       __syncthreads();
//   #pragma unroll 4
//       for (int k = 0; k < 16; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
//       __syncthreads();
//     }
//     c[y * n + x] = sum;
//   }
//   extern "C" __global__ void collatz(unsigned* out, unsigned limit) {
//     unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = i + 1, steps = 0;
//     while (n != 1 && steps < limit) {
//       if (n & 1) n = 3 * n + 1; else n >>= 1;
//       ++steps;
//     }
//     out[i] = steps;
//   }
#pragma once

namespace slate::bench {

inline constexpr char kSimBenchPtx[] = R"ptx(.version 9.0
.target sm_90
.address_size 64

.visible .entry fma_loop(
 .param .u64 fma_loop_param_0,
 .param .u32 fma_loop_param_1
)
{
 .reg .pred %p<6>;
 .reg .f32 %f<57>;
 .reg .b32 %r<15>;
 .reg .b64 %rd<5>;

 ld.param.u64 %rd1, [fma_loop_param_0];
 ld.param.u32 %r8, [fma_loop_param_1];
 mov.u32 %r1, %tid.x;
 cvt.rn.f32.u32 %f55, %r1;
 setp.lt.s32 %p1, %r8, 1;
 mov.f32 %f56, 0f40400000;
 mov.f32 %f54, 0f3F800000;
 @%p1 bra $L__BB0_6;

 add.s32 %r9, %r8, -1;
 and.b32 %r14, %r8, 3;
 setp.lt.u32 %p2, %r9, 3;
 mov.f32 %f54, 0f3F800000;
 mov.f32 %f56, 0f40400000;
 @%p2 bra $L__BB0_4;

 sub.s32 %r13, %r8, %r14;
 mov.f32 %f54, 0f3F800000;
 mov.f32 %f56, 0f40400000;

$L__BB0_3:
 fma.rn.f32 %f30, %f55, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f31, %f54, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f32, %f56, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f33, %f30, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f34, %f31, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f35, %f32, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f36, %f33, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f37, %f34, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f38, %f35, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f55, %f36, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f54, %f37, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f56, %f38, 0f3F000000, 0f3F800000;
 add.s32 %r13, %r13, -4;
 setp.ne.s32 %p3, %r13, 0;
 @%p3 bra $L__BB0_3;

$L__BB0_4:
 setp.eq.s32 %p4, %r14, 0;
 @%p4 bra $L__BB0_6;

$L__BB0_5:
 .pragma "nounroll";
 fma.rn.f32 %f55, %f55, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f54, %f54, 0f3F000000, 0f3F800000;
 fma.rn.f32 %f56, %f56, 0f3F000000, 0f3F800000;
 add.s32 %r14, %r14, -1;
 setp.ne.s32 %p5, %r14, 0;
 @%p5 bra $L__BB0_5;

$L__BB0_6:
 add.f32 %f39, %f54, %f55;
 add.f32 %f40, %f39, 0f40000000;
 add.f32 %f41, %f56, %f40;
 mov.u32 %r10, %ntid.x;
 mov.u32 %r11, %ctaid.x;
 mad.lo.s32 %r12, %r11, %r10, %r1;
 cvta.to.global.u64 %rd2, %rd1;
 mul.wide.u32 %rd3, %r12, 4;
 add.s64 %rd4, %rd2, %rd3;
 st.global.f32 [%rd4], %f41;
 ret;

}
.visible .entry vector_add(
 .param .u64 vector_add_param_0,
 .param .u64 vector_add_param_1,
 .param .u64 vector_add_param_2,
 .param .u32 vector_add_param_3
)
{
 .reg .pred %p<3>;
 .reg .f32 %f<4>;
 .reg .b32 %r<11>;
 .reg .b64 %rd<11>;

 ld.param.u64 %rd4, [vector_add_param_0];
 ld.param.u64 %rd5, [vector_add_param_1];
 ld.param.u64 %rd6, [vector_add_param_2];
 ld.param.u32 %r6, [vector_add_param_3];
 mov.u32 %r1, %ntid.x;
 mov.u32 %r7, %ctaid.x;
 mov.u32 %r8, %tid.x;
 mad.lo.s32 %r10, %r7, %r1, %r8;
 setp.ge.s32 %p1, %r10, %r6;
 @%p1 bra $L__BB1_3;

 mov.u32 %r9, %nctaid.x;
 mul.lo.s32 %r3, %r9, %r1;
 cvta.to.global.u64 %rd1, %rd4;
 cvta.to.global.u64 %rd2, %rd5;
 cvta.to.global.u64 %rd3, %rd6;

$L__BB1_2:
 mul.wide.s32 %rd7, %r10, 4;
 add.s64 %rd8, %rd1, %rd7;
 add.s64 %rd9, %rd2, %rd7;
 ld.global.nc.f32 %f1, [%rd9];
 ld.global.nc.f32 %f2, [%rd8];
 add.f32 %f3, %f2, %f1;
 add.s64 %rd10, %rd3, %rd7;
 st.global.f32 [%rd10], %f3;
 add.s32 %r10, %r10, %r3;
 setp.lt.s32 %p2, %r10, %r6;
 @%p2 bra $L__BB1_2;

$L__BB1_3:
 ret;

}
.visible .entry matrix_multiply(
 .param .u64 matrix_multiply_param_0,
 .param .u64 matrix_multiply_param_1,
 .param .u64 matrix_multiply_param_2,
 .param .u32 matrix_multiply_param_3
)
{
 .reg .pred %p<4>;
 .reg .f32 %f<23>;
 .reg .b32 %r<48>;
 .reg .b64 %rd<13>;
 .shared .align 4 .b8 _ZZ15matrix_multiplyE2as[1024];
 .shared .align 4 .b8 _ZZ15matrix_multiplyE2bs[1024];

 ld.param.u64 %rd3, [matrix_multiply_param_0];
 ld.param.u64 %rd4, [matrix_multiply_param_1];
 ld.param.u64 %rd5, [matrix_multiply_param_2];
 ld.param.u32 %r21, [matrix_multiply_param_3];
 mov.u32 %r22, %ctaid.x;
 shl.b32 %r23, %r22, 4;
 mov.u32 %r1, %tid.x;
 add.s32 %r2, %r23, %r1;
 mov.u32 %r24, %ctaid.y;
 shl.b32 %r25, %r24, 4;
 mov.u32 %r3, %tid.y;
 add.s32 %r26, %r25, %r3;
 mul.lo.s32 %r4, %r26, %r21;
 setp.lt.s32 %p1, %r21, 16;
 mov.f32 %f21, 0f00000000;
 @%p1 bra $L__BB2_5;

 add.s32 %r5, %r4, %r1;
 shl.b32 %r28, %r3, 6;
 mov.u32 %r29, _ZZ15matrix_multiplyE2as;
 add.s32 %r30, %r29, %r28;
 shl.b32 %r31, %r1, 2;
 add.s32 %r6, %r30, %r31;
 mov.u32 %r32, _ZZ15matrix_multiplyE2bs;
 add.s32 %r33, %r32, %r28;
 add.s32 %r7, %r33, %r31;
 add.s32 %r34, %r32, %r31;
 add.s32 %r8, %r34, 128;
 add.s32 %r9, %r30, 8;
 shr.s32 %r35, %r21, 31;
 shr.u32 %r36, %r35, 28;
 add.s32 %r37, %r21, %r36;
 shr.s32 %r10, %r37, 4;
 cvta.to.global.u64 %rd1, %rd3;
 cvta.to.global.u64 %rd2, %rd4;
 mov.f32 %f21, 0f00000000;
 mov.u32 %r44, 0;

$L__BB2_2:
 shl.b32 %r39, %r44, 4;
 add.s32 %r40, %r5, %r39;
 mul.wide.u32 %rd6, %r40, 4;
 add.s64 %rd7, %rd1, %rd6;
 ld.global.f32 %f7, [%rd7];
 st.shared.f32 [%r6], %f7;
 add.s32 %r41, %r39, %r3;
 mad.lo.s32 %r42, %r41, %r21, %r2;
 mul.wide.u32 %rd8, %r42, 4;
 add.s64 %rd9, %rd2, %rd8;
 ld.global.f32 %f8, [%rd9];
 st.shared.f32 [%r7], %f8;
 bar.sync 0;
 mov.u32 %r47, 128;
 mov.u32 %r45, %r9;
 mov.u32 %r46, %r8;

$L__BB2_3:
 .pragma "nounroll";
 ld.shared.f32 %f9, [%r46+-128];
 ld.shared.f32 %f10, [%r45+-8];
 fma.rn.f32 %f11, %f10, %f9, %f21;
 ld.shared.f32 %f12, [%r46+-64];
 ld.shared.f32 %f13, [%r45+-4];
 fma.rn.f32 %f14, %f13, %f12, %f11;
 ld.shared.f32 %f15, [%r46];
 ld.shared.f32 %f16, [%r45];
 fma.rn.f32 %f17, %f16, %f15, %f14;
 ld.shared.f32 %f18, [%r46+64];
 ld.shared.f32 %f19, [%r45+4];
 fma.rn.f32 %f21, %f19, %f18, %f17;
 add.s32 %r46, %r46, 256;
 add.s32 %r45, %r45, 16;
 add.s32 %r47, %r47, 256;
 setp.ne.s32 %p2, %r47, 1152;
 @%p2 bra $L__BB2_3;

 bar.sync 0;
 add.s32 %r44, %r44, 1;
 setp.lt.s32 %p3, %r44, %r10;
 @%p3 bra $L__BB2_2;

$L__BB2_5:
 add.s32 %r43, %r4, %r2;
 cvta.to.global.u64 %rd10, %rd5;
 mul.wide.s32 %rd11, %r43, 4;
 add.s64 %rd12, %rd10, %rd11;
 st.global.f32 [%rd12], %f21;
 ret;

}
.visible .entry collatz(
 .param .u64 collatz_param_0,
 .param .u32 collatz_param_1
)
{
 .reg .pred %p<8>;
 .reg .b32 %r<20>;
 .reg .b64 %rd<5>;

 ld.param.u64 %rd1, [collatz_param_0];
 ld.param.u32 %r8, [collatz_param_1];
 mov.u32 %r10, %ntid.x;
 mov.u32 %r11, %ctaid.x;
 mov.u32 %r12, %tid.x;
 mad.lo.s32 %r1, %r11, %r10, %r12;
 setp.eq.s32 %p1, %r1, 0;
 mov.u32 %r19, 0;
 setp.eq.s32 %p2, %r8, 0;
 or.pred %p3, %p1, %p2;
 @%p3 bra $L__BB3_3;

 add.s32 %r18, %r1, 1;
 mov.u32 %r19, 0;

$L__BB3_2:
 and.b32 %r14, %r18, 1;
 setp.eq.b32 %p4, %r14, 1;
 mad.lo.s32 %r15, %r18, 3, 1;
 shr.u32 %r16, %r18, 1;
 selp.b32 %r18, %r15, %r16, %p4;
 setp.ne.s32 %p5, %r18, 1;
 add.s32 %r19, %r19, 1;
 setp.lt.u32 %p6, %r19, %r8;
 and.pred %p7, %p5, %p6;
 @%p7 bra $L__BB3_2;

$L__BB3_3:
 cvta.to.global.u64 %rd2, %rd1;
 mul.wide.u32 %rd3, %r1, 4;
 add.s64 %rd4, %rd2, %rd3;
 st.global.u32 [%rd4], %r19;
 ret;

}
)ptx";

}  // namespace slate::bench
