// A kernel that never ends, of as many blocks of 32 threads as the first argument says (1 without
// one). With a second argument a grid of so many blocks follows on another stream, which takes very
// long. Prints "running" once all is launched and then waits to be killed; coming back at all is an
// error.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace {

__global__ void spin_while_zero(const volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void busy(int* sums, int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum = sum * 3 + i;
  sums[threadIdx.x] = sum;
}

bool failed(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return false;
  std::fprintf(stderr, "%s: %s: %s\n", call, cudaGetErrorName(error), cudaGetErrorString(error));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 1;
  const int behind = argc > 2 ? std::atoi(argv[2]) : 0;
  int* words = nullptr;
  if (failed("cudaMalloc", cudaMalloc(reinterpret_cast<void**>(&words), 33 * sizeof(int))))
    return 2;
  if (failed("cudaMemset", cudaMemset(words, 0, 33 * sizeof(int)))) return 2;
  cudaStream_t stream = nullptr;
  if (failed("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)))
    return 2;
  spin_while_zero<<<blocks, 32>>>(words + 32);
  if (failed("launch", cudaGetLastError())) return 2;
  if (behind > 0) busy<<<behind, 32, 0, stream>>>(words, 10'000);
  if (failed("launch", cudaGetLastError())) return 2;
  std::puts("running");
  std::fflush(stdout);
  if (failed("cudaDeviceSynchronize", cudaDeviceSynchronize())) return 2;
  std::fputs("the endless kernel ended\n", stderr);
  return 1;
}
