// Calls a function that slate does not have, and looks at what it returns, as programs do.
#include <cstdio>

int main() {
  int* memory = nullptr;
  cudaMalloc(&memory, 64);
  const cudaError_t error = cudaGraphicsUnregisterResource(nullptr);
  if (error != cudaSuccess) {
    std::fprintf(stderr, "error: %s (%s)\n", cudaGetErrorString(error), cudaGetErrorName(error));
    return 3;
  }
  return 0;
}
