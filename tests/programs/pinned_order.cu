// Copies from pinned memory that earlier work writes: they find what it left there, of any size.
#include <cstdio>
#include <cstdlib>

__global__ void count_up(int* value, int turns) {
  for (volatile int i = 0; i < turns; i = i + 1) {
  }
  *value += 1;
}

constexpr int kTurns = 20000;
constexpr int kMany = 1 << 16;
int *memory, *pinned;

void show(const char* what, int count) {
  int last = 0;
  cudaMemcpy(&last, memory + kMany + count - 1, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%s, %d: %d\n", what, count, last);
}

/// `writer` makes the last of `count` numbers one more; the copy behind it is one that waits, too.
template <typename Writer>
void check(const char* what, int count, cudaStream_t stream, const Writer& writer) {
  cudaMemset(memory, 0, 2 * kMany * sizeof(int));
  for (int i = 0; i < kMany; ++i) pinned[i] = 0;
  for (int round = 0; round < 3; ++round) {
    writer(count);
    cudaMemcpyAsync(memory + kMany, pinned, count * sizeof(int), cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    show(what, count);
    writer(count);
    cudaMemcpy(memory + kMany, pinned, count * sizeof(int), cudaMemcpyHostToDevice);
    show(what, count);
    // These may be read at once, what comes behind them must find them.
    for (int value = 1; value < 5; ++value) {
      pinned[count - 1] += value;
      cudaMemcpy(memory + kMany, pinned, count * sizeof(int), cudaMemcpyHostToDevice);
      pinned[count - 1] -= value;
    }
    count_up<<<1, 1, 0, stream>>>(memory + kMany + count - 1, 0);
    show(what, count);
  }
}

int main() {
  cudaMalloc(&memory, 2 * kMany * sizeof(int));
  cudaMallocHost(&pinned, kMany * sizeof(int));
  cudaStream_t stream, other;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEvent_t event;
  cudaEventCreate(&event);
  for (const int count : {1, 200, 4000, kMany}) {
    const std::size_t bytes = count * sizeof(int);
    check("to the host and back", count, stream, [&](int n) {
      count_up<<<1, 1, 0, stream>>>(memory + n - 1, kTurns);
      cudaMemcpyAsync(pinned, memory, bytes, cudaMemcpyDeviceToHost, stream);
    });
    check("by a kernel", count, stream,
          [&](int n) { count_up<<<1, 1, 0, stream>>>(pinned + n - 1, kTurns); });
    check("by a kernel before an event", count, stream, [&](int n) {
      count_up<<<1, 1, 0, other>>>(pinned + n - 1, kTurns);
      cudaEventRecord(event, other);
      cudaStreamWaitEvent(stream, event);
    });
    check("by a function", count, stream, [&](int n) {
      count_up<<<1, 1, 0, stream>>>(memory, kTurns);
      cudaLaunchHostFunc(
          stream, [](void* last) { ++*static_cast<int*>(last); }, pinned + n - 1);
    });
  }
  // Only the pages in the middle of registered memory are shared.
  auto* const plain = static_cast<char*>(std::calloc(kMany, sizeof(int))) + 4;
  const std::size_t bytes = kMany * sizeof(int) - 8;
  cudaHostRegister(plain, bytes, cudaHostRegisterDefault);
  cudaMemset(memory, 7, bytes);
  count_up<<<1, 1, 0, stream>>>(memory, kTurns);
  cudaMemcpyAsync(plain, memory, bytes, cudaMemcpyDeviceToHost, stream);
  for (const std::size_t from : {std::size_t{0}, std::size_t{4092}, std::size_t{8192}, bytes - 4}) {
    cudaMemcpyAsync(memory + kMany, plain + from, 4, cudaMemcpyHostToDevice, stream);
    int found = 0;
    cudaMemcpy(&found, memory + kMany, 4, cudaMemcpyDeviceToHost);
    std::printf("registered: %x\n", found);
  }
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
