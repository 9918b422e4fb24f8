// A predicate of inline PTX has the name of the one that decides who leaves, in a scope of its own.
extern "C" __global__ void early_return_scope(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned s[96];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool leaves = threadIdx.x > count % 32 + 16;
  unsigned choice;
  asm volatile("{ .reg .pred %%p1; setp.lt.u32 %%p1, %1, 8; selp.u32 %0, 5, 6, %%p1; }"
               : "=r"(choice)
               : "r"(threadIdx.x));
  if (leaves) return;
  s[threadIdx.x] = in[i % count];
  __syncthreads();
  if (i < count) out[i] = s[0] + choice;
}
