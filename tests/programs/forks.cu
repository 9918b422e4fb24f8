// Forks before it uses CUDA; parent and child compute at the same time.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

__global__ void square(int* values) {
  values[threadIdx.x] *= values[threadIdx.x];
}

int last_square(int first) {
  int host[32];
  for (int i = 0; i < 32; ++i) host[i] = first + i;
  int* memory = nullptr;
  cudaMalloc(&memory, sizeof(host));
  cudaMemcpy(memory, host, sizeof(host), cudaMemcpyHostToDevice);
  square<<<1, 32>>>(memory);
  cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
  cudaFree(memory);
  return host[31];
}

int main() {
  const pid_t child = fork();
  if (child == 0) _exit(last_square(-31) == 0 && last_square(-40) == 81 ? 0 : 1);
  const int mine = last_square(69);
  int status = -1;
  waitpid(child, &status, 0);
  std::printf("parent %d child %d\n", mine, WEXITSTATUS(status));
}
