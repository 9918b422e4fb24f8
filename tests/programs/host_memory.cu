// Host memory of every kind: allocated with each flag, registered, reached by kernels, told apart.
#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char* name(cudaError_t error) {
  return cudaGetErrorName(error);
}

__global__ void triple(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= 3;
}

constexpr int kCount = 4096;

static long sum(const int* values) {
  long total = 0;
  for (int i = 0; i < kCount; ++i) total += values[i];
  return total;
}

static void allocated(const char* what, unsigned flags) {
  int* host = nullptr;
  std::printf("%s %s", what, name(cudaHostAlloc(&host, kCount * sizeof(int), flags)));
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* device = nullptr;
  std::printf(" %s", name(cudaHostGetDevicePointer(&device, host, 0)));
  triple<<<kCount / 256, 256>>>(device, kCount);
  std::printf(" %s", name(cudaDeviceSynchronize()));
  std::printf(" %ld", sum(host));
  unsigned told = 99;
  std::printf(" %s", name(cudaHostGetFlags(&told, host)));
  std::printf(" %d", (told & flags) == flags);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, host);
  std::printf(" type %d %d", attributes.type, attributes.hostPointer == host);
  std::printf(" %s\n", name(cudaFreeHost(host)));
}

int main() {
  allocated("default", cudaHostAllocDefault);
  allocated("portable", cudaHostAllocPortable);
  allocated("mapped", cudaHostAllocMapped);
  allocated("write combined", cudaHostAllocWriteCombined);
  allocated("portable mapped", cudaHostAllocPortable | cudaHostAllocMapped);
  void* nothing = nullptr;
  std::printf("unknown flag %s\n", name(cudaHostAlloc(&nothing, 4096, 0x100)));

  constexpr std::size_t kBytes = 1 << 20;
  void* plain = nullptr;
  if (posix_memalign(&plain, 4096, kBytes) != 0) return 1;
  std::memset(plain, 1, kBytes);
  std::printf("register %s", name(cudaHostRegister(plain, kBytes, cudaHostRegisterMapped)));
  std::printf(" again %s", name(cudaHostRegister(plain, kBytes, cudaHostRegisterDefault)));
  int* device = nullptr;
  std::printf(" %s", name(cudaHostGetDevicePointer(&device, plain, 0)));
  triple<<<kCount / 256, 256>>>(device, kCount);
  cudaDeviceSynchronize();
  std::printf(" %x %x", static_cast<int*>(plain)[0], static_cast<int*>(plain)[kCount]);
  int* memory = nullptr;
  cudaMalloc(&memory, kBytes);
  cudaMemcpyAsync(memory, plain, kBytes, cudaMemcpyHostToDevice);
  cudaMemsetAsync(memory, 0, 16);
  cudaMemcpyAsync(plain, memory, kBytes, cudaMemcpyDeviceToHost);
  std::printf(" %s", name(cudaDeviceSynchronize()));
  std::printf(" %x %x", static_cast<int*>(plain)[0], static_cast<int*>(plain)[4]);
  std::printf(" unregister %s", name(cudaHostUnregister(plain)));
  std::printf(" again %s\n", name(cudaHostUnregister(plain)));
  std::free(plain);
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, memory);
  std::printf("device memory type %d %d\n", attributes.type, attributes.devicePointer == memory);
  cudaFree(memory);
  std::printf("free of what is no host memory %s\n", name(cudaFreeHost(&attributes)));
  cudaGetLastError();
  std::printf("%s\n", name(cudaDeviceSynchronize()));
}
