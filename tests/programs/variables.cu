// Variables of a module: constants and global variables that the host and kernels change between
// launches. Every form of a kernel must see, and change, the same ones.
#include <cstdio>
#include <vector>

namespace {

constexpr int kBlocks = 700, kThreads = 32, kCount = kBlocks * kThreads;

__constant__ int factors[16] = {1, 2, 3, 4};
__constant__ int offset = 5;
__device__ unsigned int launches_seen;
__device__ int table[4] = {10, 20, 30, 40};
static __device__ int hidden[kBlocks];

__device__ __noinline__ int looked_up(int i) {
  return table[i & 3] + factors[i & 15];
}

__global__ void compute(int* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = looked_up(i) * 1000 + offset;
  if (threadIdx.x == 0) {
    atomicAdd(&launches_seen, 1);
    hidden[blockIdx.x] += 1 + static_cast<int>(blockIdx.x);
  }
}
__global__ void write(int* to, int value) {
  *to = value;
}

int wrong_in(const std::vector<int>& got, const int* tables, const int* constants, int added) {
  int wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += got[i] != (tables[i & 3] + constants[i & 15]) * 1000 + added;
  return wrong;
}

}  // namespace

int main() {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  int* memory = nullptr;
  cudaMalloc(&memory, kCount * sizeof(int));
  int *offset_address = nullptr, *table_address = nullptr;
  cudaGetSymbolAddress(reinterpret_cast<void**>(&offset_address), offset);
  cudaGetSymbolAddress(reinterpret_cast<void**>(&table_address), table);
  int tables[4] = {10, 20, 30, 40};
  int constants[16] = {1, 2, 3, 4};
  int added = 5;
  std::vector<int> got(kCount);
  int wrong = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 3 == 1) {
      for (int i = 0; i < 16; ++i) constants[i] = round * 16 + i;
      cudaMemcpyToSymbolAsync(factors, constants, sizeof(constants), 0, cudaMemcpyHostToDevice,
                              stream);
    }
    if (round % 3 == 2) {
      // A kernel may write a constant for launches to come, and a table.
      write<<<1, 1, 0, stream>>>(offset_address, added = round);
      write<<<1, 1, 0, stream>>>(table_address + round % 4, tables[round % 4] = 7 * round);
    }
    compute<<<kBlocks, kThreads, 0, stream>>>(memory);
    cudaMemcpyAsync(got.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    wrong += wrong_in(got, tables, constants, added);
  }
  unsigned int seen = 0;
  cudaMemcpyFromSymbol(&seen, launches_seen, sizeof(seen));
  std::vector<int> counted(kBlocks);
  cudaMemcpyFromSymbol(counted.data(), hidden, kBlocks * sizeof(int));
  int miscounted = 0;
  for (int i = 0; i < kBlocks; ++i) miscounted += counted[i] != kRounds * (1 + i);
  std::printf("results: wrong %d\n", wrong);
  std::printf("blocks seen: %s\n", seen == kRounds * kBlocks ? "all" : "not all");
  std::printf("blocks miscounted: %d\n", miscounted);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
