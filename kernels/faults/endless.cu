// A kernel that never ends, of as many blocks of 32 threads as the argument says (1 without one).
// Prints "running" once it is launched and then waits to be killed; coming back at all is an error.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace {

__global__ void spin_while_zero(const volatile int* flag) {
  while (*flag == 0) {
  }
}

bool failed(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return false;
  std::fprintf(stderr, "%s: %s: %s\n", call, cudaGetErrorName(error), cudaGetErrorString(error));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 1;
  int* flag = nullptr;
  if (failed("cudaMalloc", cudaMalloc(reinterpret_cast<void**>(&flag), sizeof(int)))) return 2;
  if (failed("cudaMemset", cudaMemset(flag, 0, sizeof(int)))) return 2;
  spin_while_zero<<<blocks, 32>>>(flag);
  if (failed("launch", cudaGetLastError())) return 2;
  std::puts("running");
  std::fflush(stdout);
  if (failed("cudaDeviceSynchronize", cudaDeviceSynchronize())) return 2;
  std::fputs("the endless kernel ended\n", stderr);
  return 1;
}
