// Managed memory: allocations and __managed__ variables that host and kernels share by one address,
// copies and fills of it, and of pinned memory where a device address is asked for.
#include <cstdio>
#include <cstring>

struct Node {
  int value;
  Node* next;
};

__managed__ int counter = 40;
__managed__ double table[64] = {1.5, 2.5};
static __managed__ Node head;

__global__ void bump(int by) {
  atomicAdd(&counter, by);
}
__global__ void walk(int* sum) {
  for (const Node* node = &head; node != nullptr; node = node->next) *sum += node->value;
}
__global__ void scale(double factor) {
  table[threadIdx.x] *= factor;
}
__global__ void add(const int* from, int* to, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] += from[i];
}

static void variables() {
  counter += 2;  // the host's first touch, before any kernel
  bump<<<4, 32>>>(1);
  cudaDeviceSynchronize();
  std::printf("counter %d\n", counter);
  table[2] = 3.5;
  scale<<<1, 64>>>(2);
  cudaDeviceSynchronize();
  std::printf("table %g %g %g %g\n", table[0], table[1], table[2], table[3]);
  void* address = nullptr;
  std::size_t size = 0;
  const cudaError_t found = cudaGetSymbolAddress(&address, counter);
  cudaGetSymbolSize(&size, table);
  std::printf("symbol %s %d size %d\n", cudaGetErrorName(found), address == &counter,
              static_cast<int>(size));
  const int seven = 7;
  cudaMemcpyToSymbol(counter, &seven, sizeof(seven));
  bump<<<1, 1>>>(1);
  int back = 0;
  cudaMemcpyFromSymbol(&back, counter, sizeof(back));
  std::printf("through symbols %d\n", back);
}

static void list() {
  int* sum = nullptr;
  cudaMallocManaged(&sum, sizeof(int));
  *sum = 0;
  head = {1, nullptr};
  for (int i = 2; i <= 100; ++i) {
    Node* node = nullptr;
    cudaMallocManaged(&node, sizeof(Node));
    *node = {i, head.next};
    head.next = node;
  }
  walk<<<1, 1>>>(sum);
  cudaDeviceSynchronize();
  std::printf("list %d\n", *sum);
  for (Node* node = head.next; node != nullptr;) {
    Node* const next = node->next;
    cudaFree(node);
    node = next;
  }
  std::printf("free %s\n", cudaGetErrorName(cudaFree(sum)));
}

static void copies() {
  constexpr int kCount = 1 << 18;
  constexpr std::size_t kBytes = kCount * sizeof(int);
  int *managed = nullptr, *pinned = nullptr, *device = nullptr;
  cudaMallocManaged(&managed, kBytes);
  cudaMallocHost(&pinned, kBytes);
  cudaMalloc(&device, kBytes);
  std::printf("memset %s %s\n", cudaGetErrorName(cudaMemset(managed, 1, kBytes)),
              cudaGetErrorName(cudaMemset(pinned, 2, kBytes)));
  std::printf("filled %x %x\n", managed[kCount - 1], pinned[kCount - 1]);
  cudaMemcpy(device, pinned, kBytes, cudaMemcpyDefault);
  add<<<kCount / 256, 256>>>(device, managed, kCount);
  cudaDeviceSynchronize();
  std::printf("added %x\n", managed[12345]);
  cudaMemcpy(pinned, managed, kBytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(managed, device, kBytes, cudaMemcpyDeviceToDevice);
  std::printf("copied %x %x\n", pinned[kCount - 1], managed[kCount - 1]);
  cudaMemcpy(pinned, device, kBytes,
             cudaMemcpyDeviceToDevice);  // pinned memory has an address there
  std::printf("pinned as device memory %x\n", pinned[77]);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, managed + 5);
  std::printf("managed type %d itself %d\n", attributes.type == cudaMemoryTypeManaged,
              attributes.devicePointer == managed + 5 && attributes.hostPointer == managed + 5);
  std::printf("prefetch %s\n", cudaGetErrorName(cudaMemPrefetchAsync(
                                   managed, kBytes, {cudaMemLocationTypeDevice, 0}, 0, nullptr)));
  int last = 99;
  cudaMemRangeGetAttribute(&last, sizeof(last), cudaMemRangeAttributeLastPrefetchLocation, managed,
                           kBytes);
  std::printf("last prefetch %d\n", last);
  cudaFree(managed);
  cudaFreeHost(pinned);
  cudaFree(device);
}

int main() {
  variables();
  list();
  copies();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
