// The kernels of the GPU tests, as PTX that any driver of CUDA 12 or newer compiles for any GPU
// since sm_80.
#pragma once

#include <string_view>

namespace slate::cuda {

inline constexpr std::string_view kTestPtx = R"(
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counters[4];
.extern .shared .align 4 .b8 dynamic[];

// c[i] = a[i] + b[i] for i < n, one thread an element
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %d<8>;
  .reg .f32 %f<4>;
  ld.param.u64 %d1, [a];
  ld.param.u64 %d2, [b];
  ld.param.u64 %d3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p bra done;
  mul.wide.u32 %d4, %r5, 4;
  add.u64 %d5, %d1, %d4;
  add.u64 %d6, %d2, %d4;
  add.u64 %d7, %d3, %d4;
  ld.global.f32 %f1, [%d5];
  ld.global.f32 %f2, [%d6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%d7], %f3;
done:
  ret;
}

// writes `value` to `where` after `nanoseconds`
.visible .entry late_store(.param .u64 where, .param .u32 value, .param .u64 nanoseconds) {
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %d<6>;
  ld.param.u64 %d1, [where];
  ld.param.u32 %r1, [value];
  ld.param.u64 %d2, [nanoseconds];
  mov.u64 %d3, %globaltimer;
again:
  mov.u64 %d4, %globaltimer;
  sub.u64 %d5, %d4, %d3;
  setp.lt.u64 %p, %d5, %d2;
  @%p bra again;
  st.global.u32 [%d1], %r1;
  ret;
}

// ends once another stream has made `flag` other than 0
.visible .entry await(.param .u64 flag) {
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [flag];
again:
  ld.volatile.global.u32 %r1, [%d1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}

// parameters at 0, 8, 16, 20, 32 and 36
.visible .entry mixed(.param .u8 p0, .param .u64 p1, .param .u16 p2,
                      .param .align 4 .b8 p3[12], .param .f32 p4, .param .u8 p5) {
  .reg .b32 %r<3>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [p1];
  ld.param.u8 %r1, [p5];
  st.global.u32 [%d1], %r1;
  ld.param.u32 %r2, [p3+8];
  st.global.u32 [%d1+4], %r2;
  ret;
}

// stores 7 at the last word of `bytes` of dynamic shared memory and copies it to `where`
.visible .entry use_shared(.param .u64 where, .param .u32 bytes) {
  .reg .b32 %r<6>;
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [where];
  ld.param.u32 %r1, [bytes];
  mov.u32 %r2, dynamic;
  add.u32 %r3, %r2, %r1;
  mov.u32 %r4, 7;
  st.shared.u32 [%r3+-4], %r4;
  ld.shared.u32 %r5, [%r3+-4];
  st.global.u32 [%d1], %r5;
  ret;
}

// out[block] = the SM that it ran on
// Not "where": ptxas 13.0 crashes on an entry that is named as a parameter of another one.
.visible .entry sm_of_block(.param .u64 out) {
  .reg .b32 %r<3>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %smid;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r2;
  ret;
}

// adds one to counters[2]
.visible .entry count() {
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  mov.u64 %d1, counters;
  atom.global.add.u32 %r1, [%d1+8], 1;
  ret;
}

// writes where nothing is
.visible .entry stray() {
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  mov.u64 %d1, 16;
  mov.u32 %r1, 1;
  st.global.u32 [%d1], %r1;
  ret;
}

.visible .entry stop() {
  trap;
  ret;
}
)";

}  // namespace slate::cuda
