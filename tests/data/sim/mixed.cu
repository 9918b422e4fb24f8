// One kernel with much of what compiled programs do: a shared-memory reduction, a reduction over tiles of eight
// lanes, calls through pointers, recursion, a structure by value, a switch, divergent loops, printf.
// mixed.ptx is `nvcc -std=c++20 -arch=sm_90 -ptx` of it; compiled_test.cc computes the same on the host.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>

namespace cg = cooperative_groups;

using Function = unsigned (*)(unsigned);

struct Numbers {
  int values[5];
  double base;
};

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

__device__ __noinline__ unsigned triple(unsigned x) { return x * 3 + 1; }
__device__ __noinline__ unsigned flip(unsigned x) { return x ^ 0x55; }
__device__ __noinline__ unsigned halve(unsigned x) { return x >> 1; }
__device__ Function functions[3] = {triple, flip, halve};

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ double weigh(Numbers numbers, int shift) {
  double sum = numbers.base;
  for (int i = 0; i < 5; i++) sum += numbers.values[(i + shift) % 5] * (i + 1);
  return sum;
}

__device__ unsigned choose(unsigned which, unsigned v) {
  switch (which) {
    case 0: return v * 2;
    case 1: return v + 7;
    case 2: return v % 13;
    case 3: return v / 3;
    case 4: return __popc(v);
    case 5: return __clz(v);
    default: return __brev(v);
  }
}

extern "C" __global__ void mixed(unsigned* out, const unsigned* in) {
  __shared__ unsigned sums[256];
  const unsigned t = threadIdx.x;
  const unsigned v = in[t];
  sums[t] = v;
  __syncthreads();
  for (unsigned s = 128; s > 0; s >>= 1) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  out[t] = sums[0];
  out[256 + t] = cg::reduce(tile, v, cg::plus<unsigned>());
  out[512 + t] = functions[t % 3](v);
  out[768 + t] = fibonacci(t % 9);
  Numbers numbers;
  for (int i = 0; i < 5; i++) numbers.values[i] = table[(t + i) & 7];
  numbers.base = t * 0.5;
  out[1024 + t] = static_cast<unsigned>(weigh(numbers, t % 5) * 4);
  out[1280 + t] = choose(t % 7, v);
  out[1536 + t] = __match_any_sync(0xffffffff, t % 5);
  unsigned sum = 0;
  for (unsigned i = 0; i < t; i++) {
    if (i % 3 == 0) continue;
    sum += i;
    if (sum > 5000) break;
  }
  out[1792 + t] = sum;
  unsigned long long hash = v * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 29;
  out[2048 + t] = static_cast<unsigned>(hash % 1000003u);
  if (t == 77) printf("thread %u of %u: %.1f %s\n", t, blockDim.x, numbers.base, "done");
}
