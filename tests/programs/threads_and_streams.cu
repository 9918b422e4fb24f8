// Several threads, each with streams that wait for one another's events.
#include <cstdio>
#include <thread>
#include <vector>

__global__ void step(int* values, int factor, int summand) {
  values[threadIdx.x] = values[threadIdx.x] * factor + summand;
}

/// ((0 * 2 + 1) * 3 + 2), five times over, the two steps on different streams.
int work() {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t first_done = nullptr, second_done = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreate(&second);
  cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&second_done, cudaEventDisableTiming);
  int* memory = nullptr;
  cudaMalloc(&memory, 32 * sizeof(int));
  cudaMemsetAsync(memory, 0, 32 * sizeof(int), first);
  for (int i = 0; i < 5; ++i) {
    step<<<1, 32, 0, first>>>(memory, 2, 1);
    cudaEventRecord(first_done, first);
    cudaStreamWaitEvent(second, first_done);
    step<<<1, 32, 0, second>>>(memory, 3, 2);
    cudaEventRecord(second_done, second);
    cudaStreamWaitEvent(first, second_done);
  }
  int host[32] = {};
  cudaMemcpyAsync(host, memory, sizeof(host), cudaMemcpyDeviceToHost, first);
  cudaStreamSynchronize(first);
  cudaFree(memory);
  cudaEventDestroy(first_done);
  cudaEventDestroy(second_done);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  return host[31];
}

int main() {
  std::vector<int> results(6);
  std::vector<std::thread> threads;
  for (int& result : results) threads.emplace_back([&result] { result = work(); });
  for (std::thread& thread : threads) thread.join();
  for (const int result : results) std::printf("%d\n", result);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
