// The block index read by inline PTX, in more ways than the compiler's own.
extern "C" __global__ void inline_ptx(const unsigned* in, unsigned* out, unsigned count) {
  unsigned block, thread, linear;
  unsigned long long wide;
  asm volatile(
      "{ .reg .b32 t;\n\t"
      "mov.u32 t, %%ctaid.x;\n\t"
      "mov.u32 %1, %%tid.x;\n\t"
      "add.u32 %0, t, %1; }"
      : "=r"(block), "=r"(thread));
  asm volatile(
      "{ .reg .b32 x, y, width;\n\t"
      "mov.u32 x, %%ctaid.x; mov.u32 y, %%ctaid.y; mov.u32 width, %%nctaid.x;\n\t"
      "mad.lo.u32 %0, y, width, x; }"
      : "=r"(linear));
  asm volatile("cvt.u64.u32 %0, %%nctaid.y;" : "=l"(wide));
  const unsigned i = linear * blockDim.x + thread;
  if (i < count) out[i] = in[i] + block + linear + static_cast<unsigned>(wide);
}
