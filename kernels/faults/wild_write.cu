// A kernel that writes to address 0x10, and what the calls after it return. Exit status 0 if the
// synchronization reports cudaErrorIllegalAddress.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

namespace {

__global__ void write_to(int* address) {
  *address = 1;
}

void show(const char* call, cudaError_t error) {
  std::printf("%s: %s\n", call, cudaGetErrorName(error));
}

}  // namespace

int main() {
  int* memory = nullptr;
  show("cudaMalloc before", cudaMalloc(reinterpret_cast<void**>(&memory), sizeof(int)));
  write_to<<<1, 1>>>(reinterpret_cast<int*>(std::uintptr_t{0x10}));
  const cudaError_t fault = cudaDeviceSynchronize();
  show("cudaDeviceSynchronize", fault);
  show("cudaGetLastError", cudaGetLastError());
  show("cudaGetLastError again", cudaGetLastError());
  int value = 0;
  show("cudaMemcpy", cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost));
  show("cudaMalloc after", cudaMalloc(reinterpret_cast<void**>(&memory), sizeof(int)));
  write_to<<<1, 1>>>(memory);
  show("launch", cudaGetLastError());
  show("cudaDeviceSynchronize again", cudaDeviceSynchronize());
  return fault == cudaErrorIllegalAddress ? 0 : 1;
}
