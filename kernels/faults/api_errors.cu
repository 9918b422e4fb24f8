// What the runtime API answers to wrong calls. One line a case: its name, what the call returned,
// and what cudaGetLastError then said. Nothing that varies from run to run or machine to machine is
// printed, so the output of two runtimes can be compared. Cases whose outcome CUDA leaves undefined
// are not here.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

__global__ void do_nothing() {}

__device__ int a_symbol[4];

/// Ends once *flag is set, or after a bounded while: also where nothing else runs beside it.
__global__ void wait_for(const volatile int* flag, int* result) {
  int rounds = 0;
  while (*flag == 0 && rounds < 1'000'000) ++rounds;
  *result = rounds < 0;
}

void not_a_kernel() {}

void show(const char* name, cudaError_t returned) {
  const cudaError_t last = cudaGetLastError();
  std::printf("%s: %s last %s\n", name, cudaGetErrorName(returned), cudaGetErrorName(last));
}

/// An address of the device's kind that no allocation of this process is near.
char* wild(char* allocated) {
  return allocated + (std::ptrdiff_t{1} << 40);
}

void allocation_cases(char* memory) {
  void* pointer = nullptr;
  show("malloc-beyond-memory", cudaMalloc(&pointer, std::size_t{1} << 50));
  show("malloc-zero", cudaMalloc(&pointer, 0));
  std::printf("malloc-zero-pointer: %s\n", pointer == nullptr ? "null" : "not null");
  show("malloc-null-result", cudaMalloc(static_cast<void**>(nullptr), 16));
  show("free-null", cudaFree(nullptr));
  show("free-wild", cudaFree(wild(memory)));
  show("free-inside", cudaFree(memory + 256));
  show("malloc-ordinary", cudaMalloc(&pointer, 16));
  show("free-ordinary", cudaFree(pointer));
  show("free-twice", cudaFree(pointer));
}

void copy_cases(char* memory, std::size_t bytes) {
  std::vector<char> host(2 * bytes);
  char* from = host.data();
  show("copy-bad-kind", cudaMemcpy(memory, from, 16, static_cast<cudaMemcpyKind>(77)));
  show("copy-nothing", cudaMemcpy(memory, from, 0, cudaMemcpyHostToDevice));
  show("copy-to-wild", cudaMemcpy(wild(memory), from, 16, cudaMemcpyHostToDevice));
  show("copy-from-wild", cudaMemcpy(from, wild(memory), 16, cudaMemcpyDeviceToHost));
  show("copy-on-device-to-wild", cudaMemcpy(wild(memory), memory, 16, cudaMemcpyDeviceToDevice));
  show("copy-on-device-from-wild", cudaMemcpy(memory, wild(memory), 16, cudaMemcpyDeviceToDevice));
  show("copy-past-end", cudaMemcpy(memory, from, bytes + 1, cudaMemcpyHostToDevice));
  show("copy-back-past-end", cudaMemcpy(from, memory, bytes + 1, cudaMemcpyDeviceToHost));
  show("copy-far-past-end", cudaMemcpy(memory, from, 2 * bytes, cudaMemcpyHostToDevice));
  show("set-wild", cudaMemset(wild(memory), 0, 16));
  show("set-past-end", cudaMemset(memory, 0, bytes + 1));
  show("set-nothing", cudaMemset(memory, 0, 0));
  show("copy-to-symbol-past-end", cudaMemcpyToSymbol(a_symbol, from, sizeof(a_symbol) + 4));
  show("copy-to-non-symbol",
       cudaMemcpyToSymbol(reinterpret_cast<const void*>(&not_a_kernel), from, 4));
}

void launch_cases() {
  do_nothing<<<1, 2000>>>();
  show("launch-2000-threads", cudaPeekAtLastError());
  do_nothing<<<dim3(1, 0, 1), 32>>>();
  show("launch-zero-grid", cudaPeekAtLastError());
  do_nothing<<<1, 0>>>();
  show("launch-zero-block", cudaPeekAtLastError());
  do_nothing<<<1, dim3(1, 1, 65)>>>();
  show("launch-65-threads-in-z", cudaPeekAtLastError());
  do_nothing<<<dim3(1, 65536, 1), 1>>>();
  show("launch-65536-blocks-in-y", cudaPeekAtLastError());
  do_nothing<<<1, 1, kMiB>>>();
  show("launch-too-much-shared-memory", cudaPeekAtLastError());
  do_nothing<<<1, 1, 49 * 1024>>>();
  show("launch-more-shared-memory-than-allowed", cudaPeekAtLastError());
  do_nothing<<<1, 32>>>();
  show("launch-ordinary", cudaPeekAtLastError());
  show("synchronize", cudaDeviceSynchronize());
  cudaFuncAttributes attributes;
  show("attributes-of-a-kernel", cudaFuncGetAttributes(&attributes, do_nothing));
  show("attributes-of-a-function", cudaFuncGetAttributes(&attributes, not_a_kernel));
  void* no_arguments[] = {nullptr};
  show("launch-a-function", cudaLaunchKernel(reinterpret_cast<const void*>(&not_a_kernel), dim3(1),
                                             dim3(1), no_arguments, 0, nullptr));
}

void last_error_cases(char* memory) {
  cudaFree(wild(memory));
  const cudaError_t peeked = cudaPeekAtLastError();
  const cudaError_t peeked_again = cudaPeekAtLastError();
  const cudaError_t got = cudaGetLastError();
  const cudaError_t got_again = cudaGetLastError();
  std::printf("peek-keeps: %s then %s\n", cudaGetErrorName(peeked), cudaGetErrorName(peeked_again));
  std::printf("get-clears: %s then %s\n", cudaGetErrorName(got), cudaGetErrorName(got_again));
  cudaFree(wild(memory));
  show("success-keeps-last", cudaMemset(memory, 0, 16));
  std::printf("name-of-unknown: %s\n", cudaGetErrorName(static_cast<cudaError_t>(12345)));
  std::printf("text-of-unknown: %s\n", cudaGetErrorString(static_cast<cudaError_t>(12345)));
}

void device_cases() {
  show("set-device-99", cudaSetDevice(99));
  show("set-device-negative", cudaSetDevice(-1));
  show("set-device-0", cudaSetDevice(0));
  cudaDeviceProp properties;
  show("properties-of-device-99", cudaGetDeviceProperties(&properties, 99));
  int value = 0;
  show("unknown-attribute", cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(99999), 0));
  show("attribute-of-device-99", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
}

void stream_and_event_cases() {
  cudaEvent_t start = nullptr, stop = nullptr, untimed = nullptr;
  cudaStream_t stream = nullptr, other = nullptr;
  show("event-create", cudaEventCreate(&start));
  show("event-create-second", cudaEventCreate(&stop));
  show("event-create-untimed", cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  show("event-create-bad-flags", cudaEventCreateWithFlags(&untimed, 0x8000));
  show("stream-create", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  show("stream-create-second", cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  show("stream-create-bad-flags", cudaStreamCreateWithFlags(&other, 0x8000));
  float elapsed = 0;
  show("elapsed-unrecorded", cudaEventElapsedTime(&elapsed, start, stop));
  show("query-unrecorded", cudaEventQuery(start));
  show("synchronize-unrecorded", cudaEventSynchronize(start));
  show("query-idle-stream", cudaStreamQuery(stream));

  int* flag = nullptr;  // [0] ends the kernel, [1] is its result
  show("malloc-flag", cudaMalloc(reinterpret_cast<void**>(&flag), 2 * sizeof(int)));
  show("set-flag", cudaMemset(flag, 0, 2 * sizeof(int)));
  show("synchronize-flag", cudaDeviceSynchronize());
  show("record-start", cudaEventRecord(start, stream));
  wait_for<<<1, 1, 0, stream>>>(flag, flag + 1);
  show("record-stop", cudaEventRecord(stop, stream));
  show("query-running-event", cudaEventQuery(stop));
  show("query-running-stream", cudaStreamQuery(stream));
  show("elapsed-running", cudaEventElapsedTime(&elapsed, start, stop));
  show("release", cudaMemsetAsync(flag, 1, sizeof(int), other));
  show("synchronize-stop", cudaEventSynchronize(stop));
  show("query-finished-event", cudaEventQuery(stop));
  show("query-finished-stream", cudaStreamQuery(stream));
  show("elapsed-finished", cudaEventElapsedTime(&elapsed, start, stop));
  show("record-untimed", cudaEventRecord(untimed, stream));
  show("synchronize-untimed", cudaEventSynchronize(untimed));
  show("elapsed-untimed", cudaEventElapsedTime(&elapsed, start, untimed));
  show("event-destroy-null", cudaEventDestroy(nullptr));
  show("event-destroy", cudaEventDestroy(start));
  show("stream-destroy", cudaStreamDestroy(stream));
  show("free-flag", cudaFree(flag));
}

}  // namespace

int main() {
  constexpr std::size_t kBytes = 4 * kMiB;
  char* memory = nullptr;
  show("malloc", cudaMalloc(reinterpret_cast<void**>(&memory), kBytes));
  if (memory == nullptr) return 1;
  allocation_cases(memory);
  copy_cases(memory, kBytes);
  launch_cases();
  last_error_cases(memory);
  device_cases();
  stream_and_event_cases();
  show("free", cudaFree(memory));
  show("synchronize-at-end", cudaDeviceSynchronize());
  return 0;
}
