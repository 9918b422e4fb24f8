// The stream-ordered allocator: memory that comes and goes in stream order, pools and what they
// tell.
#include <cstdint>
#include <cstdio>

__global__ void fill(int* values, int value) {
  values[threadIdx.x] = value;
}
__global__ void sum(const int* values, int* out) {
  atomicAdd(out, values[threadIdx.x]);
}

int main() {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  int* out = nullptr;
  cudaMallocAsync(&out, sizeof(int), stream);
  cudaMemsetAsync(out, 0, sizeof(int), stream);
  for (int i = 1; i <= 20; ++i) {
    int* values = nullptr;
    cudaMallocAsync(&values, 64 * sizeof(int), stream);
    fill<<<1, 64, 0, stream>>>(values, i);
    sum<<<1, 64, 0, stream>>>(values, out);
    cudaFreeAsync(values, stream);
  }
  int result = 0;
  cudaMemcpyAsync(&result, out, sizeof(int), cudaMemcpyDeviceToHost, stream);
  std::printf("sum %d %s\n", result, cudaGetErrorName(cudaStreamSynchronize(stream)));

  cudaMemPool_t pool = nullptr, standard = nullptr;
  cudaDeviceGetDefaultMemPool(&standard, 0);
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  std::printf("create %s\n", cudaGetErrorName(cudaMemPoolCreate(&pool, &properties)));
  std::uint64_t threshold = 1 << 20;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  threshold = 0;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
  std::printf("threshold %d\n", static_cast<int>(threshold));
  void* memory = nullptr;
  cudaMallocFromPoolAsync(&memory, 4096, pool, stream);
  std::uint64_t used = 0;
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  std::printf("used %d\n", static_cast<int>(used));
  cudaFreeAsync(memory, stream);
  cudaStreamSynchronize(stream);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  std::printf("free %d\n", static_cast<int>(used));
  cudaDeviceSetMemPool(0, pool);
  cudaMemPool_t current = nullptr;
  cudaDeviceGetMemPool(&current, 0);
  std::printf("current %d\n", current == pool);
  std::printf("destroy %s\n", cudaGetErrorName(cudaMemPoolDestroy(pool)));
  cudaFree(out);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
