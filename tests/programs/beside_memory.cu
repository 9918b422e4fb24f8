// Reads a row before its first allocation and one behind its last, as Rodinia's srad_v2 does, then
// writes there and reads again. Undefined, but many programs live with it: see
// docs/failure_model.md. Prints the sums of both rows, before and after. Argument: what it writes.
#include <cstdio>
#include <cstdlib>

constexpr int kRow = 8192;

__global__ void sum(const int* row, int* out) {
  for (int i = threadIdx.x; i < kRow; i += blockDim.x) atomicAdd(out, row[i]);
}
__global__ void put(int* row, int value) {
  for (int i = threadIdx.x; i < kRow; i += blockDim.x) row[i] = value;
}

int main(int count, char** words) {
  const int value = count > 1 ? std::atoi(words[1]) : 1;
  constexpr std::size_t kBytes = 16 << 20;  // of its own segment, to the last byte
  int* first = nullptr;
  int* last = nullptr;
  int* sums = nullptr;
  if (cudaMallocManaged(&sums, 4 * sizeof(int)) != cudaSuccess) return 1;
  for (int i = 0; i < 4; ++i) sums[i] = 0;
  if (cudaMalloc(&first, kBytes) != cudaSuccess || cudaMalloc(&last, kBytes) != cudaSuccess)
    return 1;
  if (last < first) {
    int* const swapped = first;
    first = last;
    last = swapped;
  }
  int* const before = first - kRow;
  int* const behind = last + kBytes / sizeof(int);
  for (int i = 0; i < 2; ++i) {
    sum<<<1, 128>>>(before, sums + 2 * i);
    sum<<<1, 128>>>(behind, sums + 2 * i + 1);
    put<<<1, 128>>>(before, value);
    put<<<1, 128>>>(behind, value);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
      std::printf("%s\n", cudaGetErrorName(error));
      return 1;
    }
  }
  std::printf("%d %d %d %d\n", sums[0], sums[1], sums[2] / kRow, sums[3] / kRow);
  return 0;
}
