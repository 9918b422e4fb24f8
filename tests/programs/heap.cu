// malloc and free in kernels: pieces that go from kernel to kernel, new and delete, the size of the
// heap, more than it has, and a heap that is this program's alone: it leaks all of it in the end,
// and finds all of it again in its next run.
#include <cstdio>

static const char* name(cudaError_t error) {
  return cudaGetErrorName(error);
}

struct Node {
  int value;
  Node* next;
};

/// One list a thread, in pieces of the heap.
__global__ void build(Node** lists, int length) {
  Node* first = nullptr;
  for (int i = 0; i < length; ++i) {
    Node* const node = new Node{static_cast<int>(threadIdx.x) + i, first};
    if (node == nullptr) break;
    first = node;
  }
  lists[blockIdx.x * blockDim.x + threadIdx.x] = first;
}
__global__ void sum(Node* const* lists, int* sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int total = 0;
  for (const Node* node = lists[i]; node != nullptr; node = node->next) total += node->value;
  sums[i] = total;
}
__global__ void destroy(Node** lists) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  while (Node* const node = lists[i]) {
    lists[i] = node->next;
    delete node;
  }
}

static void lists_across_kernels() {
  constexpr int kThreads = 512, kLength = 8;
  Node** lists = nullptr;
  int* sums = nullptr;
  cudaMalloc(&lists, kThreads * sizeof(Node*));
  cudaMalloc(&sums, kThreads * sizeof(int));
  for (int round = 0; round < 3; ++round) {
    build<<<kThreads / 64, 64>>>(lists, kLength);
    sum<<<kThreads / 128, 128>>>(lists, sums);
    destroy<<<kThreads / 32, 32>>>(lists);
    int host[kThreads];
    cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost);
    long total = 0;
    for (const int each : host) total += each;
    std::printf("lists %ld\n", total);
  }
  // The heap's memory is not the host's to touch.
  build<<<1, 1>>>(lists, 1);
  Node* node = nullptr;
  cudaMemcpy(&node, lists, sizeof(node), cudaMemcpyDeviceToHost);
  std::printf("free by the host %s\n", name(cudaFree(node)));
  cudaGetLastError();
  destroy<<<1, 1>>>(lists);
  std::printf("freed by a kernel %s\n", name(cudaDeviceSynchronize()));
  cudaFree(lists);
  cudaFree(sums);
}

/// An array of its own for every thread, with work at the block's end for those behind it.
__global__ void squares(int* sums) {
  const int count = static_cast<int>(threadIdx.x) % 100 + 1;
  int* const values = new int[count];
  if (values == nullptr) {
    printf("no memory for thread %d\n", threadIdx.x);
    return;
  }
  for (int i = 0; i < count; ++i) values[i] = i * i;
  __syncthreads();
  int total = 0;
  for (int i = 0; i < count; ++i) total += values[i];
  delete[] values;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = total;
  if (total == 0 && blockIdx.x == 0 && threadIdx.x == 0) printf("printed beside malloc\n");
}

static void arrays() {
  constexpr int kBlocks = 20, kThreads = 128;
  int* sums = nullptr;
  cudaMalloc(&sums, kBlocks * kThreads * sizeof(int));
  for (int round = 0; round < 5; ++round) {
    squares<<<kBlocks, kThreads>>>(sums);
    std::printf("squares %s\n", name(cudaDeviceSynchronize()));
  }
  static int host[kBlocks * kThreads];
  cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost);
  std::printf("of the last %d %d\n", host[99], host[kBlocks * kThreads - 1]);
  cudaFree(sums);
}

/// Never given back.
__global__ void leak(unsigned long long bytes, int* given) {
  if (malloc(bytes) != nullptr) atomicAdd(given, 1);
}

static void exhaust() {
  int* given = nullptr;
  cudaMalloc(&given, sizeof(int));
  cudaMemset(given, 0, sizeof(int));
  leak<<<4, 256>>>(32 << 10, given);
  int count = 0;
  cudaMemcpy(&count, given, sizeof(count), cudaMemcpyDeviceToHost);
  std::printf("much of 16 MiB given %d, and no more %d\n", count >= 200, count <= 1024);
  std::printf("size after malloc %s",
              name(cudaDeviceSetLimit(cudaLimitMallocHeapSize, std::size_t{32} << 20)));
  cudaGetLastError();
  std::size_t bytes = 0;
  cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize);
  std::printf(" %zu\n", bytes);
}

int main() {
  std::size_t bytes = 0;
  cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize);
  std::printf("size %zu\n", bytes);
  std::printf("another %s",
              name(cudaDeviceSetLimit(cudaLimitMallocHeapSize, std::size_t{16} << 20)));
  cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize);
  std::printf(" %zu\n", bytes);
  lists_across_kernels();
  arrays();
  exhaust();
  std::printf("%s\n", name(cudaDeviceSynchronize()));
}
