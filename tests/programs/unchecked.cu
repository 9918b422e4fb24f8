// A program that checks nothing: for so many seconds it adds to a number on the device and reads
// it, and ends well whatever comes of that.
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void add(int* number) {
  atomicAdd(number, 1);
}

int main(int count, char** words) {
  const std::chrono::duration<double> limit(count > 1 ? std::atof(words[1]) : 1);
  const auto begun = std::chrono::steady_clock::now();
  int* number = nullptr;
  cudaMalloc(&number, sizeof(int));
  int last = 0;
  while (std::chrono::steady_clock::now() - begun < limit) {
    add<<<1, 32>>>(number);
    cudaMemcpy(&last, number, sizeof(int), cudaMemcpyDeviceToHost);
  }
  std::printf("done\n");
  return 0;
}
