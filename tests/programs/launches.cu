// Launches by every way there is, streams with priorities, events, attributes and occupancy,
// limits, versions, the profiler's switches, and how errors are kept and told.
#include <cuda_profiler_api.h>

#include <cstdio>
#include <utility>

static const char* name(cudaError_t error) {
  return cudaGetErrorName(error);
}

__global__ void add(int* value, int amount) {
  if (threadIdx.x == 0) atomicAdd(value, amount);
}
__global__ void reverse(int* values) {
  extern __shared__ int shared[];
  const int last = static_cast<int>(blockDim.x) - 1, i = static_cast<int>(threadIdx.x);
  shared[last - i] = values[i];
  __syncthreads();
  values[i] = shared[i];
}

static void ways(int* value) {
  int amount = 2;
  void* arguments[] = {&value, &amount};
  std::printf("launch %s", name(cudaLaunchKernel(add, dim3(3), dim3(32), arguments, 0, nullptr)));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  std::printf(" %s",
              name(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(add), arguments)));
  std::printf(" %s", name(cudaLaunchKernelEx(&config, add, std::as_const(value), 10)));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributePriority;
  attribute.val.priority = 0;
  config.attrs = &attribute;
  config.numAttrs = 1;
  std::printf(" %s", name(cudaLaunchKernelEx(&config, add, std::as_const(value), 100)));
  int host = 0;
  cudaMemcpy(&host, value, sizeof(host), cudaMemcpyDeviceToHost);
  std::printf(" %d\n", host);
}

static void streams(int* value) {
  int least = 9, greatest = 9;
  std::printf("priorities %s", name(cudaDeviceGetStreamPriorityRange(&least, &greatest)));
  std::printf(" %d\n", least == 0 && greatest < 0);
  cudaStream_t high = nullptr;
  std::printf("stream %s", name(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, -1)));
  int priority = 9;
  unsigned flags = 9;
  cudaStreamGetPriority(high, &priority);
  cudaStreamGetFlags(high, &flags);
  std::printf(" %d %u", priority, flags);
  cudaEvent_t before = nullptr, after = nullptr, untimed = nullptr;
  cudaEventCreate(&before);
  cudaEventCreate(&after);
  cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming);
  cudaEventRecord(before, high);
  add<<<1, 32, 0, high>>>(value, 1000);
  cudaEventRecord(after, high);
  cudaStreamWaitEvent(nullptr, after, 0);
  add<<<1, 32>>>(value, 1000);
  cudaEventRecord(untimed);
  std::printf(" %s", name(cudaEventSynchronize(untimed)));
  float milliseconds = -1;
  std::printf(" %s", name(cudaEventElapsedTime(&milliseconds, before, after)));
  std::printf(" %d", milliseconds >= 0 && milliseconds < 10000);
  std::printf(" untimed %s", name(cudaEventElapsedTime(&milliseconds, before, untimed)));
  cudaGetLastError();
  std::printf(" %s\n", name(cudaEventQuery(after)));
  for (cudaEvent_t each : {before, after, untimed}) cudaEventDestroy(each);
  cudaStreamDestroy(high);
}

static void attributes() {
  cudaFuncAttributes told{};
  std::printf("attributes %s", name(cudaFuncGetAttributes(&told, reverse)));
  std::printf(" %zu %d", told.sharedSizeBytes, told.maxThreadsPerBlock);
  std::printf(" %s", name(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               96 << 10)));
  cudaFuncGetAttributes(&told, reverse);
  std::printf(" %d\n", told.maxDynamicSharedSizeBytes);
  int blocks = 0, grid = 0, block = 0;
  std::printf("occupancy %s", name(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse,
                                                                                 1024, 96 << 10)));
  std::printf(" %d", blocks);
  std::printf(" %s", name(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add)));
  std::printf(" %d\n", grid > 0 && block == 1024);
  int* values = nullptr;
  cudaMalloc(&values, 1024 * sizeof(int));
  int host[1024];
  for (int i = 0; i < 1024; ++i) host[i] = i;
  cudaMemcpy(values, host, sizeof(host), cudaMemcpyHostToDevice);
  reverse<<<1, 1024, 90 << 10>>>(values);
  cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost);
  std::printf("reversed %d %d\n", host[0], host[1023]);
  cudaFree(values);
}

__global__ void allocate(int* given) {
  char* const memory = static_cast<char*>(malloc(64 << 10));
  if (memory == nullptr) return;
  memory[threadIdx.x] = 1;
  atomicAdd(given, memory[threadIdx.x]);
}

static void limits() {
  std::size_t value = 0;
  std::printf("heap %s", name(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20)));
  cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize);
  std::printf(" %d", value >= 64 << 20);
  std::printf(" stack %s", name(cudaDeviceSetLimit(cudaLimitStackSize, 8192)));
  cudaDeviceGetLimit(&value, cudaLimitStackSize);
  std::printf(" %d", value >= 8192);
  std::printf(" fifo %s", name(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20)));
  cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize);
  std::printf(" %d\n", value >= 4 << 20);
}

static void errors(int* value) {
  add<<<1, 5000>>>(value, 1);
  std::printf("too many threads %s", name(cudaPeekAtLastError()));
  std::printf(" %s", name(cudaGetLastError()));
  std::printf(" %s\n", name(cudaGetLastError()));
  std::printf("no memory %s", name(cudaMalloc(reinterpret_cast<void**>(&value), 1ull << 60)));
  std::printf(" kept %s", name(cudaDeviceSynchronize()));
  std::printf(" %s\n", name(cudaGetLastError()));
}

int main() {
  int driver = 0, runtime = 0;
  std::printf("versions %s", name(cudaDriverGetVersion(&driver)));
  std::printf(" %s", name(cudaRuntimeGetVersion(&runtime)));
  std::printf(" %d\n", runtime > 0 && runtime <= driver);
  limits();
  int* value = nullptr;
  cudaMalloc(&value, sizeof(int));
  cudaMemset(value, 0, sizeof(int));
  std::printf("profiler %s\n", name(cudaProfilerStart()));
  ways(value);
  std::printf("profiler %s\n", name(cudaProfilerStop()));
  streams(value);
  attributes();
  // More than the heap has by default.
  cudaMemset(value, 0, sizeof(int));
  allocate<<<1, 512>>>(value);
  int given = 0;
  cudaMemcpy(&given, value, sizeof(given), cudaMemcpyDeviceToHost);
  std::printf("allocated %d\n", given >= 400);
  errors(value);
  std::printf("%s\n", name(cudaDeviceSynchronize()));
}
