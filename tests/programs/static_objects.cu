// Uses CUDA before main() and after it.
#include <cstdio>

__global__ void count_up(int* value) {
  *value += 1;
}

struct Counter {
  int* memory = nullptr;
  Counter() {
    const cudaError_t allocated = cudaMalloc(&memory, sizeof(int));
    cudaMemset(memory, 0, sizeof(int));
    count_up<<<1, 1>>>(memory);
    std::printf("before main %s\n", cudaGetErrorName(allocated));
  }
  int value() const {
    int host = -1;
    cudaMemcpy(&host, memory, sizeof(host), cudaMemcpyDeviceToHost);
    return host;
  }
  ~Counter() {
    count_up<<<1, 1>>>(memory);
    const int last = value();
    std::printf("after main %d %s\n", last, cudaGetErrorName(cudaFree(memory)));
  }
};

Counter counter;

int main() {
  count_up<<<1, 1>>>(counter.memory);
  std::printf("in main %d\n", counter.value());
}
