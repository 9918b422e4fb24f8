// Compiled with -maxrregcount=32: blocks of 1024 threads of a kernel that would rather have more
// registers than such a block can have, and one whose own bounds the option leaves alone.
#include <cstdio>

constexpr int kThreads = 1024;
constexpr int kValues = 48;

template <int kSeed>
__device__ unsigned mixed(const unsigned* in) {
  unsigned values[kValues];
  for (int i = 0; i < kValues; ++i) values[i] = in[(threadIdx.x + i * kSeed) % kThreads];
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kValues; ++i) {
      values[i] = values[i] * 31 + values[(i * 7 + round) % kValues] + kSeed;
    }
  }
  unsigned sum = 0;
  for (int i = 0; i < kValues; ++i) sum ^= values[i] >> (i % 13);
  return sum;
}

__global__ void limited(const unsigned* in, unsigned* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = mixed<3>(in);
}
__global__ void __launch_bounds__(128) bounded(const unsigned* in, unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = mixed<5>(in);
}

int main() {
  constexpr int kBlocks = 8;
  static unsigned host[kBlocks * kThreads];
  unsigned *in = nullptr, *out = nullptr;
  cudaMalloc(&in, sizeof(unsigned) * kThreads);
  cudaMalloc(&out, sizeof(host));
  for (int i = 0; i < kThreads; ++i) host[i] = 2654435761u * i;
  cudaMemcpy(in, host, sizeof(unsigned) * kThreads, cudaMemcpyHostToDevice);
  cudaFuncAttributes attributes{};
  cudaFuncGetAttributes(&attributes, limited);
  std::printf("at most 32 registers %d\n", attributes.numRegs <= 32);
  for (int kernel = 0; kernel < 2; ++kernel) {
    cudaMemset(out, 0, sizeof(host));
    if (kernel == 0) limited<<<kBlocks, kThreads>>>(in, out);
    if (kernel == 1) bounded<<<kBlocks * kThreads / 128, 128>>>(in, out);
    const cudaError_t launched = cudaGetLastError();
    cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
    unsigned long long sum = 0;
    for (const unsigned value : host) sum = sum * 131 + value;
    std::printf("%s %llx\n", cudaGetErrorName(launched), sum);
  }
}
