// Memory and pinned memory that is freed while a kernel uses it: natively the call waits for the
// kernel. Kernels that are launched behind the call change nothing about that.
#include <cstdio>
#include <cstring>

namespace {

constexpr int kWords = 1 << 16;
constexpr int kRounds = 300;

/// Reads all words again and again, so that it takes a while.
__global__ void sum(const volatile unsigned* from, unsigned long long* to, int rounds) {
  unsigned long long all = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = threadIdx.x; i < kWords; i += blockDim.x) all += from[i];
  }
  atomicAdd(to, all);
}

__global__ void count(unsigned* to) {
  atomicAdd(to, 1u);
}

cudaStream_t streams[2];
unsigned long long* result = nullptr;
unsigned* counter = nullptr;

/// Of the kernel that began before `release`.
template <typename Release>
void try_with(const char* name, unsigned* from, int rounds, const Release& release) {
  cudaMemset(result, 0, sizeof(*result));
  cudaDeviceSynchronize();
  sum<<<1, 256, 0, streams[0]>>>(from, result, rounds);
  const cudaError_t released = release();
  for (int i = 0; i < 8; ++i) count<<<1, 32, 0, streams[1]>>>(counter);
  unsigned long long got = 0;
  const cudaError_t copied = cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost);
  std::printf("%s: %s, %s, %s\n", name, cudaGetErrorName(released), cudaGetErrorName(copied),
              got == 3ull * kWords * rounds ? "right" : "wrong");
}

}  // namespace

int main() {
  for (cudaStream_t& each : streams) cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
  cudaMalloc(&result, sizeof(*result));
  cudaMalloc(&counter, sizeof(*counter));
  cudaMemset(counter, 0, sizeof(*counter));
  unsigned* pinned = nullptr;
  cudaHostAlloc(&pinned, kWords * sizeof(unsigned), cudaHostAllocMapped);
  for (int i = 0; i < kWords; ++i) pinned[i] = 3;
  for (int i = 0; i < 3; ++i) {
    // Large enough for a mapping of its own.
    unsigned* memory = nullptr;
    cudaMalloc(&memory, 32 << 20);
    cudaMemcpy(memory, pinned, kWords * sizeof(unsigned), cudaMemcpyHostToDevice);
    try_with("memory", memory, kRounds, [&] { return cudaFree(memory); });
  }
  try_with("pinned memory", pinned, 10, [&] { return cudaFreeHost(pinned); });
  cudaDeviceSynchronize();
  unsigned counted = 0;
  cudaMemcpy(&counted, counter, sizeof(counted), cudaMemcpyDeviceToHost);
  std::printf("counted %u\n", counted);
  return 0;
}
