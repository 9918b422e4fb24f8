// Work in streams finds what the work before it left, and nothing of what comes later: memory that
// is freed, got again and copied to and fro, events recorded again, streams and events destroyed
// under work, graphs, threads.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

__device__ int symbol[2];

__device__ void pass_time(int turns) {
  for (volatile int i = 0; i < turns; i = i + 1) {
  }
}

__global__ void put(int* to, int value, int turns) {
  pass_time(turns);
  *to = value;
}

__global__ void add(int* to, int value, int turns) {
  pass_time(turns);
  *to += value;
}

__global__ void sum(const int* values, int count, int turns, int* to) {
  pass_time(turns);
  int all = 0;
  for (int i = 0; i < count; ++i) all += values[i];
  *to = all;
}

__global__ void add_symbols(int* to) {
  *to = symbol[0] + symbol[1];
}

constexpr int kCount = 1024, kTurns = 30000, kBytes = kCount * sizeof(int);
int *device, *pinned;
cudaStream_t one, other;

int read(const int* from) {
  int value = -1;
  cudaMemcpy(&value, from, sizeof(int), cudaMemcpyDeviceToHost);
  return value;
}

void put_in(cudaStream_t stream, int* to, int value) {
  put<<<1, 1, 0, stream>>>(to, value, kTurns);
}

void to_device(int* to, const int* from, cudaStream_t stream) {
  cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyHostToDevice, stream);
}

void to_host(int* to, const int* from, cudaStream_t stream) {
  cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDeviceToHost, stream);
}

void memory_that_is_freed() {
  const std::vector<int> ones(kCount, 1), twos(kCount, 2);
  int *first = nullptr, *second = nullptr;
  cudaMalloc(&first, kBytes);
  cudaMemcpy(first, ones.data(), kBytes, cudaMemcpyHostToDevice);
  sum<<<1, 1, 0, one>>>(first, kCount, kTurns, device);
  cudaFree(first);
  cudaMalloc(&second, kBytes);
  cudaMemcpyAsync(second, twos.data(), kBytes, cudaMemcpyHostToDevice, other);
  cudaDeviceSynchronize();
  std::printf("freed under a kernel %d\n", read(device));
  cudaFree(second);
  cudaMallocAsync(&first, kBytes, one);
  cudaMemcpyAsync(first, ones.data(), kBytes, cudaMemcpyHostToDevice, one);
  sum<<<1, 1, 0, one>>>(first, kCount, kTurns, device);
  cudaFreeAsync(first, one);
  cudaMallocAsync(&second, kBytes, other);
  cudaMemcpyAsync(second, twos.data(), kBytes, cudaMemcpyHostToDevice, other);
  cudaFreeAsync(second, other);
  cudaDeviceSynchronize();
  std::printf("freed in its stream %d\n", read(device));
  std::vector<int> plain(kCount * 64, 1);
  int* large = nullptr;
  cudaMalloc(&large, plain.size() * sizeof(int));
  put_in(one, device, 0);
  cudaMemcpyAsync(large, plain.data(), plain.size() * sizeof(int), cudaMemcpyHostToDevice, one);
  for (int& value : plain) value = 2;
  cudaStreamSynchronize(one);
  std::printf("changed behind its copy %d %d\n", read(large), read(large + plain.size() - 1));
  cudaFree(large);
}

void events_and_streams() {
  cudaEvent_t event = nullptr, gone = nullptr;
  cudaEventCreate(&event);
  cudaEventCreate(&gone);
  put_in(one, device, 5);
  cudaEventRecord(event, one);
  cudaStreamWaitEvent(other, event);
  add<<<1, 1, 0, other>>>(device, 1, 1);
  cudaEventRecord(event, other);
  cudaEventSynchronize(event);
  std::printf("an event recorded again %d\n", read(device));
  put_in(one, device, 15);
  cudaEventRecord(gone, one);
  cudaStreamWaitEvent(other, gone);
  cudaEventDestroy(gone);
  add<<<1, 1, 0, other>>>(device, 1, 1);
  cudaStreamSynchronize(other);
  std::printf("an event that is gone %d\n", read(device));
  cudaStream_t ending = nullptr, next = nullptr, blocking = nullptr;
  cudaStreamCreateWithFlags(&ending, cudaStreamNonBlocking);
  put_in(ending, device, 25);
  cudaStreamDestroy(ending);
  cudaStreamCreateWithFlags(&next, cudaStreamNonBlocking);
  std::printf("a new stream %s", cudaGetErrorName(cudaStreamQuery(next)));
  cudaDeviceSynchronize();
  std::printf(", the work of the old one %d\n", read(device));
  cudaStreamCreate(&blocking);
  put_in(blocking, device, 3);
  add<<<1, 1>>>(device, 1, kTurns);
  add<<<1, 1, 0, blocking>>>(device, 10, 1);
  cudaStreamSynchronize(blocking);
  std::printf("the default stream between %d\n", read(device));
  cudaStreamDestroy(next);
  cudaStreamDestroy(blocking);
  cudaEventDestroy(event);
}

void copies_of_every_kind() {
  put_in(one, pinned, 5);
  cudaMemcpyToSymbolAsync(symbol, pinned, sizeof(int), 0, cudaMemcpyHostToDevice, one);
  put_in(one, pinned + 1, 6);
  cudaMemcpyToSymbolAsync(symbol, pinned + 1, sizeof(int), sizeof(int), cudaMemcpyHostToDevice,
                          one);
  add_symbols<<<1, 1, 0, one>>>(device);
  cudaMemcpyFromSymbolAsync(pinned + 2, symbol, sizeof(int), sizeof(int), cudaMemcpyDeviceToHost,
                            one);
  to_device(device + 1, pinned + 2, one);
  cudaStreamSynchronize(one);
  std::printf("symbols %d %d\n", read(device), read(device + 1));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaMallocArray(&array, &format, 16, 2);
  put_in(one, pinned + 8, 8);
  cudaMemcpy2DToArrayAsync(array, 0, 0, pinned + 8, 16, 16, 1, cudaMemcpyHostToDevice, one);
  cudaMemcpy2DFromArrayAsync(pinned + 16, 16, array, 0, 0, 16, 1, cudaMemcpyDeviceToHost, one);
  to_device(device, pinned + 16, one);
  cudaStreamSynchronize(one);
  std::printf("arrays %d\n", read(device));
  cudaFreeArray(array);
  put_in(one, pinned + 24, 0);
  cudaMemsetAsync(pinned + 24, 1, 64, one);
  add<<<1, 1, 0, one>>>(pinned + 25, 1, kTurns);
  cudaMemcpy2DAsync(device, 8, pinned + 24, 8, 8, 2, cudaMemcpyHostToDevice, one);
  cudaStreamSynchronize(one);
  std::printf("fills and rows %x %x\n", read(device), read(device + 1));
  int* managed = nullptr;
  cudaMallocManaged(&managed, kBytes);
  managed[0] = 1;
  add<<<1, 1, 0, one>>>(managed, 1, kTurns);
  cudaMemcpyAsync(managed + 1, managed, sizeof(int), cudaMemcpyDefault, one);
  cudaMemcpyAsync(device, managed + 1, sizeof(int), cudaMemcpyDefault, one);
  cudaStreamSynchronize(one);
  std::printf("managed memory %d\n", read(device));
  cudaFree(managed);
}

void graphs() {
  int* const at = pinned + 64;
  *at = 0;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  add<<<1, 1, 0, one>>>(at, 1, kTurns);
  to_device(device, at, one);
  cudaLaunchHostFunc(
      one, [](void* value) { *static_cast<int*>(value) += 100; }, at);
  to_device(device + 1, at, one);
  to_host(at + 1, device + 1, one);
  to_device(device + 2, at + 1, one);
  cudaStreamEndCapture(one, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  for (const int launches : {1, 1, 3}) {
    for (int i = 0; i < launches; ++i) cudaGraphLaunch(ready, one);
    cudaStreamSynchronize(one);
    std::printf("a graph %d %d %d\n", read(device), read(device + 1), read(device + 2));
  }
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

void threads() {
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([t] {
      cudaStream_t mine = nullptr;
      cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
      int *const here = pinned + 128 + 16 * t, *const there = device + 128 + 16 * t;
      *here = 0;
      for (int i = 0; i < kRounds; ++i) {
        to_device(there, here, mine);
        add<<<1, 1, 0, mine>>>(there, 1, 50);
        to_host(here, there, mine);
      }
      cudaStreamSynchronize(mine);
      cudaStreamDestroy(mine);
    });
  }
  for (std::thread& each : all) each.join();
  for (int t = 0; t < kThreads; ++t) std::printf("thread %d: %d\n", t, pinned[128 + 16 * t]);
}

// Each launch of an executable graph follows the one before it, whatever its stream.
static void one_graph_in_many_streams() {
  cudaMemset(device, 0, sizeof(int));
  cudaDeviceSynchronize();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  add<<<1, 1, 0, one>>>(device, 1, 2000);
  cudaStreamEndCapture(one, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 20; ++i) {
    cudaGraphLaunch(exec, one);
    cudaGraphLaunch(exec, other);
  }
  cudaDeviceSynchronize();
  cudaMemcpy(pinned, device, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("one graph in two streams: %d of 40\n", *pinned);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

static void CUDART_CB write_late(void* to) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  *static_cast<int*>(to) = 42;
}

// What the host copies for a blocking stream waits for the default one, too.
static void host_copies_behind_the_default_stream() {
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  int *from = pinned, *to = pinned + 16;
  *from = *to = 1;
  cudaLaunchHostFunc(nullptr, write_late, from);
  cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyHostToHost, blocking);
  cudaStreamSynchronize(blocking);
  std::printf("copied on the host: %d\n", *to);
  *from = 1;
  cudaLaunchHostFunc(blocking, write_late, from);
  cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyHostToHost, nullptr);
  cudaDeviceSynchronize();
  std::printf("and the other way round: %d\n", *to);
  cudaStreamDestroy(blocking);
}

int main() {
  cudaMalloc(&device, kBytes);
  cudaMallocHost(&pinned, kBytes);
  cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  memory_that_is_freed();
  events_and_streams();
  copies_of_every_kind();
  graphs();
  threads();
  one_graph_in_many_streams();
  host_copies_behind_the_default_stream();
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
