// Functions of the program in streams: their order among kernels, copies and each other.
#include <atomic>
#include <cstdio>

__global__ void add(int* value, int amount) {
  *value += amount;
}

__device__ int variable = 0;

struct Exchange {
  int in = 0;    // what the function finds
  int out = 0;   // what it leaves for the next copy
  int back = 0;  // the same by way of a variable
};

std::atomic<bool> asked{false};

void answer(void* data) {
  auto& exchange = *static_cast<Exchange*>(data);
  asked.wait(false);
  exchange.out = exchange.in * 100;
}

int order = 0;
void digit(void* data) {
  order = order * 10 + *static_cast<int*>(data);
}

void finished(cudaStream_t, cudaError_t status, void* data) {
  *static_cast<cudaError_t*>(data) = status;
}

int main() {
  int* memory = nullptr;
  cudaMalloc(&memory, sizeof(int));
  cudaMemset(memory, 0, sizeof(int));
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreate(&stream);

  Exchange* exchange = nullptr;
  cudaMallocHost(&exchange, sizeof(Exchange));
  *exchange = {};
  cudaMemcpyFromSymbol(&exchange->back, variable, sizeof(int));
  add<<<1, 1, 0, streams[0]>>>(memory, 3);
  cudaMemcpyAsync(&exchange->in, memory, sizeof(int), cudaMemcpyDeviceToHost, streams[0]);
  cudaLaunchHostFunc(streams[0], answer, exchange);
  cudaMemcpyAsync(memory, &exchange->out, sizeof(int), cudaMemcpyHostToDevice, streams[0]);
  add<<<1, 1, 0, streams[0]>>>(memory, 4);
  cudaMemcpyToSymbolAsync(variable, &exchange->out, sizeof(int), 0, cudaMemcpyHostToDevice,
                          streams[0]);
  cudaMemcpyFromSymbolAsync(&exchange->back, variable, sizeof(int), 0, cudaMemcpyDeviceToHost,
                            streams[0]);
  // None of these calls waits for the function, which waits for the last of them.
  std::printf("query %s\n", cudaGetErrorName(cudaStreamQuery(streams[0])));
  asked = true;
  asked.notify_one();
  // Waits for the function on the other stream by an event.
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaEventRecord(event, streams[0]);
  cudaStreamWaitEvent(streams[1], event);
  add<<<1, 1, 0, streams[1]>>>(memory, 1000);
  cudaStreamSynchronize(streams[1]);
  int result = 0;
  cudaMemcpy(&result, memory, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("in %d out %d result %d\n", exchange->in, exchange->out, result);
  std::printf("back %d\n", exchange->back);

  // A wait for what an event has recorded keeps nobody from recording it anew, or from timing by
  // it.
  asked = false;
  cudaEvent_t start = nullptr;
  cudaEventCreate(&start);
  cudaEventRecord(start, streams[1]);
  cudaEventRecord(event, streams[1]);
  cudaLaunchHostFunc(streams[0], answer, exchange);
  cudaStreamWaitEvent(streams[0], event);
  cudaEventRecord(event, streams[1]);
  cudaEventSynchronize(event);
  float milliseconds = -1;
  const cudaError_t timed = cudaEventElapsedTime(&milliseconds, start, event);
  std::printf("recorded anew %s %d\n", cudaGetErrorName(timed), milliseconds >= 0);
  asked = true;
  asked.notify_one();

  int digits[6] = {1, 2, 3, 4, 5, 6};
  for (int i = 0; i < 6; ++i) cudaLaunchHostFunc(streams[0], digit, &digits[i]);
  cudaError_t status = cudaErrorUnknown;
  cudaStreamAddCallback(streams[0], finished, &status, 0);
  cudaDeviceSynchronize();
  std::printf("order %d status %s\n", order, cudaGetErrorName(status));
  cudaLaunchHostFunc(nullptr, digit, &digits[0]);
  cudaDeviceSynchronize();
  std::printf("default stream %d\n", order);
  std::printf("null %s\n", cudaGetErrorName(cudaLaunchHostFunc(streams[0], nullptr, nullptr)));
  for (int i = 0; i < 200; ++i)
    cudaLaunchHostFunc(
        streams[i % 2], [](void*) { ++order; }, nullptr);
  cudaDeviceSynchronize();
  std::printf("many %d\n", order);
  cudaFreeHost(exchange);
  cudaFree(memory);
}
