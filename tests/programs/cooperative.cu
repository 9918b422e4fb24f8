// Cooperative launches: the blocks of a grid meet at grid.sync(), by every way to launch so; grids
// that do not fit at once are refused.
#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kRounds = 5;

// Each round every element becomes the sum of itself and of one that another block owns: wrong by
// far without the meeting in between.
__global__ void mix(unsigned* from, unsigned* to, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned n = gridDim.x * blockDim.x;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    to[i] = from[i] + from[(i + n / 2 + 7) % n];
    grid.sync();
    unsigned* const next = from;
    from = to;
    to = next;
  }
}

static unsigned check(const std::vector<unsigned>& got, unsigned n) {
  std::vector<unsigned> from(n), to(n);
  for (unsigned i = 0; i < n; ++i) from[i] = i;
  for (int round = 0; round < kRounds; ++round) {
    for (unsigned i = 0; i < n; ++i) to[i] = from[i] + from[(i + n / 2 + 7) % n];
    from.swap(to);
  }
  unsigned wrong = 0;
  for (unsigned i = 0; i < n; ++i) wrong += got[i] != from[i];
  return wrong;
}

int main() {
  int sms = 0, per_sm = 0, cooperative = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, mix, kThreads, 0);
  std::printf("attribute %d\n", cooperative);
  const unsigned most = static_cast<unsigned>(sms * per_sm);
  for (const unsigned blocks : {1u, 2u, static_cast<unsigned>(sms), most}) {
    const unsigned n = blocks * kThreads;
    std::vector<unsigned> host(n);
    for (unsigned i = 0; i < n; ++i) host[i] = i;
    unsigned *from = nullptr, *to = nullptr;
    cudaMalloc(&from, n * sizeof(unsigned));
    cudaMalloc(&to, n * sizeof(unsigned));
    cudaMemcpy(from, host.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice);
    int rounds = kRounds;
    void* arguments[] = {&from, &to, &rounds};
    const cudaError_t launched =
        cudaLaunchCooperativeKernel(mix, dim3(blocks), dim3(kThreads), arguments, 0, nullptr);
    cudaMemcpy(host.data(), to, n * sizeof(unsigned), cudaMemcpyDeviceToHost);
    std::printf("%s wrong %u\n", cudaGetErrorName(launched), check(host, n));
    cudaFree(from);
    cudaFree(to);
  }

  unsigned* memory = nullptr;
  cudaMalloc(&memory, 2 * kThreads * sizeof(unsigned));
  cudaMemset(memory, 0, 2 * kThreads * sizeof(unsigned));
  unsigned* const half = memory + kThreads;
  int rounds = 3;
  void* arguments[] = {&memory, const_cast<unsigned**>(&half), &rounds};
  std::printf("too large %s\n", cudaGetErrorName(cudaLaunchCooperativeKernel(
                                    mix, dim3(most + 1), dim3(kThreads), arguments, 0, nullptr)));
  cudaGetLastError();
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = kThreads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  std::printf("extended %s\n", cudaGetErrorName(cudaLaunchKernelEx(&config, mix, memory, half, 3)));
  config.gridDim = most + 1;
  std::printf("extended too large %s\n",
              cudaGetErrorName(cudaLaunchKernelEx(&config, mix, memory, half, 3)));
  cudaGetLastError();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
