// Compiled with -default-stream per-thread: stream 0 of each thread is a stream of its own.
#include <cstdio>
#include <thread>

__global__ void add(int* values, int amount) {
  values[threadIdx.x] += amount;
}

void work(int amount, int* sum) {
  int* memory = nullptr;
  cudaMalloc(&memory, 64 * sizeof(int));
  cudaMemsetAsync(memory, 0, 64 * sizeof(int));
  for (int i = 0; i < 10; ++i) add<<<1, 64>>>(memory, amount);
  int host[64];
  cudaMemcpyAsync(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
  cudaStreamSynchronize(nullptr);
  *sum = 0;
  for (const int value : host) *sum += value;
  cudaFree(memory);
}

int main() {
  unsigned long long mine = 0, again = 0, legacy = 0, others = 0;
  cudaStreamGetId(nullptr, &mine);
  cudaStreamGetId(cudaStreamPerThread, &again);
  cudaStreamGetId(cudaStreamLegacy, &legacy);
  std::thread([&] { cudaStreamGetId(nullptr, &others); }).join();
  std::printf("ids %d %d %d\n", mine == again, mine == legacy, mine == others);
  int sums[4];
  std::thread threads[4];
  for (int i = 0; i < 4; ++i) threads[i] = std::thread(work, i + 1, &sums[i]);
  for (std::thread& thread : threads) thread.join();
  std::printf("sums %d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
