// Linear memory in every shape: pitched, of three dimensions, symbols, fills, asynchronous copies,
// copies whose direction the runtime finds out.
#include <cstdio>
#include <cstring>
#include <vector>

__constant__ int factors[4] = {1, 2, 3, 4};
__device__ int counters[8];
__device__ float single = 1.5f;

static const char* name(cudaError_t error) {
  return cudaGetErrorName(error);
}

/// FNV-1a, so that every byte counts.
static unsigned hash(const void* bytes, std::size_t count) {
  unsigned sum = 2166136261u;
  for (std::size_t i = 0; i < count; ++i) {
    sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 16777619u;
  }
  return sum;
}

__global__ void scale_rows(float* memory, std::size_t pitch, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < width && y < height) {
    float* const row = reinterpret_cast<float*>(reinterpret_cast<char*>(memory) + y * pitch);
    row[x] = row[x] * factors[y % 4] + single;
  }
}
__global__ void add_planes(cudaPitchedPtr volume, cudaExtent extent) {
  const int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
  char* const plane = static_cast<char*>(volume.ptr) + z * volume.pitch * extent.height;
  reinterpret_cast<int*>(plane + y * volume.pitch)[x] += x + 10 * y + 100 * z;
}
__device__ int nameless[4] = {5, 6, 7, 8};
__global__ void tell_address(int** address) {
  *address = nameless;
}
__global__ void count() {
  atomicAdd(&counters[threadIdx.x % 8], factors[threadIdx.x % 4]);
}

static void pitched() {
  constexpr int kWidth = 37, kHeight = 19;
  std::vector<float> host(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) host[i] = static_cast<float>(i);
  float* memory = nullptr;
  std::size_t pitch = 0;
  std::printf("pitch %s", name(cudaMallocPitch(&memory, &pitch, kWidth * 4, kHeight)));
  std::printf(" %d\n", pitch % 32 == 0 && pitch >= kWidth * 4);
  cudaMemset2D(memory, pitch, 0, kWidth * 4, kHeight);
  cudaMemcpy2D(memory, pitch, host.data(), kWidth * 4, kWidth * 4, kHeight, cudaMemcpyHostToDevice);
  scale_rows<<<kHeight, 64>>>(memory, pitch, kWidth, kHeight);
  cudaMemset2D(reinterpret_cast<char*>(memory) + 2 * pitch + 8, pitch, 0x3f, 20, 5);
  cudaMemcpy2D(host.data(), kWidth * 4, memory, pitch, kWidth * 4, kHeight, cudaMemcpyDefault);
  std::printf("rows %08x\n", hash(host.data(), host.size() * 4));
  std::printf("narrow %s\n", name(cudaMemcpy2D(memory, 8, host.data(), kWidth * 4, kWidth * 4, 2,
                                               cudaMemcpyHostToDevice)));
  cudaGetLastError();
  cudaFree(memory);
}

static void volumes() {
  const cudaExtent extent = make_cudaExtent(24 * sizeof(int), 7, 5);
  cudaPitchedPtr volume{};
  std::printf("volume %s", name(cudaMalloc3D(&volume, extent)));
  std::printf(" %zu %zu\n", volume.xsize, volume.ysize);
  cudaMemset3D(volume, 0, extent);
  add_planes<<<dim3(7, 5), 24>>>(volume, extent);
  std::vector<int> host(24 * 7 * 5, -1);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(host.data(), 24 * sizeof(int), 24, 7);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  std::printf("copy %s", name(cudaMemcpy3D(&copy)));
  std::printf(" %08x %d\n", hash(host.data(), host.size() * 4), host.back());
  copy.srcPos = make_cudaPos(4 * sizeof(int), 2, 1);
  copy.dstPos = make_cudaPos(0, 1, 2);
  copy.extent = make_cudaExtent(8 * sizeof(int), 3, 2);
  std::printf("part %s", name(cudaMemcpy3DAsync(&copy, nullptr)));
  cudaDeviceSynchronize();
  std::printf(" %08x\n", hash(host.data(), host.size() * 4));
  cudaFree(volume.ptr);
}

static void symbols() {
  const int changed[2] = {20, 30};
  cudaMemcpyToSymbol(factors, changed, sizeof(changed), sizeof(int));
  count<<<2, 32>>>();
  int host[8] = {};
  std::printf("symbol %s", name(cudaMemcpyFromSymbol(host, counters, sizeof(host))));
  for (int each : host) std::printf(" %d", each);
  void* address = nullptr;
  std::size_t bytes = 0;
  cudaGetSymbolAddress(&address, counters);
  cudaGetSymbolSize(&bytes, counters);
  cudaMemset(address, 0, bytes);
  cudaMemcpy(host, address, bytes, cudaMemcpyDeviceToHost);
  std::printf(" then %d of %zu bytes\n", host[0] + host[7], bytes);
  std::printf("beyond %s\n",
              name(cudaMemcpyToSymbol(factors, changed, sizeof(changed), 3 * sizeof(int))));
  cudaGetLastError();
}

/// A variable that only a kernel has named: what it is has to be found out from its address.
static void address_of_kernel() {
  int **place = nullptr, *address = nullptr;
  cudaMalloc(&place, sizeof(int*));
  tell_address<<<1, 1>>>(place);
  cudaMemcpy(&address, place, sizeof(int*), cudaMemcpyDefault);
  int host[4] = {};
  std::printf("nameless %s", name(cudaMemcpy(host, address, sizeof(host), cudaMemcpyDefault)));
  std::printf(" %d %d\n", host[0], host[3]);
  // As one side of a copy with an array.
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaMallocArray(&array, &format, 4);
  cudaMemcpy2DToArray(array, 0, 0, address, sizeof(host), sizeof(host), 1, cudaMemcpyDefault);
  std::memset(host, 0, sizeof(host));
  cudaMemcpy2DFromArray(host, sizeof(host), array, 0, 0, sizeof(host), 1, cudaMemcpyDefault);
  std::printf("in an array %d %d\n", host[0], host[3]);
  cudaFreeArray(array);
  cudaFree(place);
}

static void streams() {
  constexpr int kCount = 100000;
  int *first = nullptr, *second = nullptr;
  cudaMalloc(&first, kCount * sizeof(int));
  cudaMalloc(&second, kCount * sizeof(int));
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i * 7;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaMemcpyAsync(first, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(second, first, kCount * sizeof(int), cudaMemcpyDeviceToDevice, stream);
  cudaMemsetAsync(second, 0, 4000, stream);
  std::vector<int> back(kCount, -1);
  cudaMemcpyAsync(back.data(), second, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream);
  std::printf("stream %s", name(cudaStreamSynchronize(stream)));
  std::printf(" %08x\n", hash(back.data(), back.size() * 4));
  std::printf("wrong way %s\n",
              name(cudaMemcpy(first, host.data(), 4, static_cast<cudaMemcpyKind>(9))));
  cudaGetLastError();
  cudaStreamDestroy(stream);
  cudaFree(first);
  cudaFree(second);
}

int main() {
  address_of_kernel();
  pitched();
  volumes();
  symbols();
  streams();
  std::printf("%s\n", name(cudaDeviceSynchronize()));
}
