// A kernel that adds to a register which nothing has written, as programs do by mistake, launched
// so often that slate would like another form of it. What it finds there is not ours to say; with
// an argument the program tells how often that changed, and the result.
#include <cstdio>

constexpr int kThreads = 64, kBlocks = 2560, kRounds = 40;

__global__ void unwritten(unsigned* out, unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned product = i;
  for (unsigned k = 0; k < factor; ++k) product = product * factor + k;
  unsigned sum;
  asm volatile("{ .reg .u32 sum; add.u32 %0, sum, %1; }" : "=r"(sum) : "r"(product));
  out[i] = sum;
}

int main(int argc, char**) {
  static unsigned host[kThreads * kBlocks];
  unsigned* out = nullptr;
  cudaMalloc(&out, sizeof(host));
  unsigned first = 0;
  int failed = 0, changed = 0;
  for (int round = 0; round < kRounds; ++round) {
    unwritten<<<kBlocks, kThreads>>>(out, 16);
    if (cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess) ++failed;
    unsigned hash = 0;
    for (const unsigned value : host) hash = hash * 31 + value;
    if (round == 0) first = hash;
    changed += hash != first ? 1 : 0;
  }
  std::printf("launches that failed %d\n", failed);
  if (argc > 1) std::printf("changed %d result %x\n", changed, first);
}
