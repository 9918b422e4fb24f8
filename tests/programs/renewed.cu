// What is made anew in the place of what was there: memory at an address, a constant's value, a
// texture under its handle. Launches and copies that come again and again must see the new one.
#include <cstdio>
#include <vector>

namespace {

__constant__ int constant;

__global__ void write(int* to, int value) {
  *to = value;
}
__global__ void read(int* to) {
  *to = constant;
}
__global__ void fetch(int* to, cudaTextureObject_t texture) {
  to[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x);
}
__global__ void fill(int* to, int value, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    to[i] = value;
  }
}

constexpr int kTimes = 24;  // of each, so that they are launched as what comes again
cudaStream_t stream = nullptr;

std::vector<int> from_device(const int* memory, std::size_t count) {
  std::vector<int> host(count);
  cudaMemcpyAsync(host.data(), memory, count * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return host;
}

void memory() {
  constexpr int kCount = 16384;
  constexpr std::size_t kBytes = kCount * sizeof(int);
  int wrong = 0;
  for (int round = 0; round < 30; ++round) {
    const std::size_t bytes = static_cast<std::size_t>(4 + round % 3) << 20;
    int *from = nullptr, *to = nullptr;
    cudaMalloc(&from, bytes);
    cudaMalloc(&to, bytes);
    for (int i = 0; i < kTimes; ++i) {
      fill<<<16, 256, 0, stream>>>(from, round * 100 + i, kCount);
      cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream);
    }
    for (int i = 0; i < kTimes; ++i) {
      cudaMemcpyAsync(to + kCount, from, kBytes, cudaMemcpyDeviceToDevice, stream);
    }
    for (const int value : from_device(to, 2 * kCount)) wrong += value != round * 100 + kTimes - 1;
    cudaFree(from);
    cudaFree(to);
    if (round % 4 != 0) continue;
    // So that the next ones are not where the last ones were.
    void* other = nullptr;
    cudaMalloc(&other, 16 << 20);
    cudaMemset(other, 1, 16 << 20);
    cudaFree(other);
  }
  std::printf("memory: wrong %d\n", wrong);
}

void constants(int* seen) {
  constexpr int kCount = 1024;
  int *address = nullptr, *source = nullptr, wrong = 0;
  cudaGetSymbolAddress(reinterpret_cast<void**>(&address), constant);
  for (int i = 0; i < kCount; ++i) {
    write<<<1, 1, 0, stream>>>(address, i * 7);
    read<<<1, 1, 0, stream>>>(seen + i);
  }
  std::vector<int> host = from_device(seen, kCount);
  for (int i = 0; i < kCount; ++i) wrong += host[i] != i * 7;
  std::printf("constants, by kernels: wrong %d\n", wrong);

  wrong = 0;
  for (int i = 0; i < kCount; ++i) host[i] = i * 3 + 1;
  cudaMalloc(&source, kCount * sizeof(int));
  cudaMemcpy(source, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
  // The copy may be under way when its call returns, and `stream` does not wait for it.
  cudaDeviceSynchronize();
  for (int i = 0; i < kCount; ++i) {
    cudaMemcpyAsync(address, source + i, sizeof(int), cudaMemcpyDeviceToDevice, stream);
    read<<<1, 1, 0, stream>>>(seen + i);
  }
  host = from_device(seen, kCount);
  for (int i = 0; i < kCount; ++i) wrong += host[i] != i * 3 + 1;
  std::printf("constants, by copies: wrong %d\n", wrong);
}

void textures(int* seen) {
  constexpr int kCount = 128;
  int* tables[2] = {};
  int wrong = 0;
  for (int i = 0; i < 2; ++i) {
    cudaMalloc(&tables[i], kCount * sizeof(int));
    fill<<<1, kCount, 0, stream>>>(tables[i], i + 5, kCount);
  }
  cudaStreamSynchronize(stream);
  for (int round = 0; round < 50; ++round) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {tables[round % 2], cudaCreateChannelDesc<int>(), kCount * sizeof(int)};
    cudaTextureDesc description{};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    for (int i = 0; i < kTimes; ++i) fetch<<<1, 32, 0, stream>>>(seen, texture);
    for (const int value : from_device(seen, 32)) wrong += value != round % 2 + 5;
    cudaDestroyTextureObject(texture);
  }
  std::printf("textures: wrong %d\n", wrong);
}

}  // namespace

int main() {
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  int* seen = nullptr;
  cudaMalloc(&seen, 4096);
  memory();
  constants(seen);
  textures(seen);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
