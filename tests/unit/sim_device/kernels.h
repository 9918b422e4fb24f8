// The PTX that the tests of device/sim run. Every kernel is small enough to be read.
#pragma once

namespace slate::sim {

inline constexpr char kKernels[] = R"ptx(
.version 9.0
.target sm_90
.address_size 64

.visible .global .align 4 .u32 table[4] = {11, 22, 33, 44};
.visible .global .align 8 .u64 pointer_to_third = table+8;
.visible .const .align 4 .u32 scale = 3;

// c[i] = a[i] + b[i] for i < n
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p bra done;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}

// *out += sum of in[0..], one element a thread, blocks of 256
.visible .entry reduce(.param .u64 in, .param .u64 out)
{
  .shared .align 4 .b8 sums[1024];
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 8;
  add.s32 %r3, %r3, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.u32 %r4, [%rd4];
  mov.u32 %r5, sums;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r5, %r6;
  st.shared.u32 [%r7], %r4;
  mov.u32 %r8, 128;
step:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r8;
  @%p1 bra skip;
  shl.b32 %r9, %r8, 2;
  add.s32 %r9, %r7, %r9;
  ld.shared.u32 %r10, [%r9];
  ld.shared.u32 %r11, [%r7];
  add.s32 %r10, %r10, %r11;
  st.shared.u32 [%r7], %r10;
skip:
  shr.u32 %r8, %r8, 1;
  setp.ne.u32 %p2, %r8, 0;
  @%p2 bra step;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra done;
  ld.shared.u32 %r10, [sums];
  red.global.add.u32 [%rd2], %r10;
done:
  ret;
}

// Every thread adds 1 to *counter.
.visible .entry count(.param .u64 counter)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [counter];
  red.global.add.u32 [%rd1], 1;
  ret;
}

// *address = value
.visible .entry store(.param .u64 address, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [address];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}

// *to = *from
.visible .entry load(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.global.u32 %r1, [%rd1];
  st.global.u32 [%rd2], %r1;
  ret;
}

// *mine = 1, then waits until *theirs is not 0
.visible .entry meet(.param .u64 mine, .param .u64 theirs)
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [mine];
  ld.param.u64 %rd2, [theirs];
  mov.u32 %r1, 1;
  st.volatile.global.u32 [%rd1], %r1;
again:
  ld.volatile.global.u32 %r1, [%rd2];
  setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ret;
}

// *mine = 1, then runs for ever
.visible .entry endless(.param .u64 mine)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [mine];
  mov.u32 %r1, 1;
  st.volatile.global.u32 [%rd1], %r1;
again:
  add.u32 %r1, %r1, 1;
  bra again;
}

// Block b writes 1 to at[b], then runs for ever.
.visible .entry endless_or_stray(.param .u64 at)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [at];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, 1;
  st.global.u32 [%rd3], %r2;
again:
  add.u32 %r2, %r2, 1;
  bra again;
}

// For eight rounds: order[(*tickets)++] = block * warps + warp, by the first lane of each warp
.visible .entry order(.param .u64 tickets, .param .u64 order)
{
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [tickets];
  ld.param.u64 %rd2, [order];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %p, %r2, 0;
  @%p bra done;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r5, %r3, %r4, %r1;
  shr.u32 %r5, %r5, 5;
  mov.u32 %r6, 8;
again:
  atom.global.add.u32 %r7, [%rd1], 1;
  mul.wide.u32 %rd3, %r7, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r5;
  sub.u32 %r6, %r6, 1;
  setp.ne.u32 %p, %r6, 0;
  @%p bra again;
done:
  ret;
}

// out[block] = the SM that the block ran on
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %smid;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}

// *out = *pointer_to_third * scale
.visible .entry use_variables(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.global.u64 %rd2, [pointer_to_third];
  ld.global.u32 %r1, [%rd2];
  ld.const.u32 %r2, [scale];
  mul.lo.u32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3;
  ret;
}
)ptx";

}  // namespace slate::sim
