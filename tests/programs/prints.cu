// printf in kernels: every kind of conversion, what it returns, order, threads and streams; and
// assertions, which end the session with cudaErrorAssert.
#include <cassert>
#include <cstdio>

__global__ void conversions(int seven, const char* word, int* returned) {
  char local[8] = {'l', 'o', 'c', 'a', 'l', 0};
  local[0] += seven - 7;
  returned[0] = printf("no arguments\n");
  returned[1] = printf("%d %5d|%-5d|%05d %+d %i %u %x %X %#x %o\n", seven, seven, seven, seven,
                       seven, -seven, 4000000000u, 48879, 48879, seven, 8);
  returned[2] = printf("%lld %llx %ld %hd %c%c %%\n", -5000000000ll * seven, 1ull << 60,
                       12345678901l, seven, 'a' + seven, 'b');
  returned[3] =
      printf("%f %.2f %8.3f|%e %g %G %a\n", seven / 2.0, 2.0f / 3, 1e3, 1e-10, 1e20, 0.5, 1.0);
  returned[4] = printf("%s|%8s|%-8s|%.2s|%s|%*d|%-*.2f|\n", word, "right", "left", "cut", local, 6,
                       seven, 7, 1.5);
  returned[5] = printf("pointer %p\n", reinterpret_cast<void*>(0x1234ull));
  returned[6] = printf("%s", "");
}

__global__ void count(int launch) {
  if (threadIdx.x == blockDim.x - 1) printf("launch %d thread %d\n", launch, threadIdx.x);
}

/// From many threads at once: nothing is lost, and no line is cut by another.
__global__ void dots() {
  if (threadIdx.x % 3 == 0) printf("%s", "..");
}

__device__ __noinline__ int checked(int value) {
  assert(value != 3);
  return value;
}

__global__ void asserts(int* out, int first) {
  out[threadIdx.x] = checked(static_cast<int>(threadIdx.x) + first);
}

int main() {
  char* word = nullptr;
  cudaMalloc(&word, 16);
  cudaMemcpy(word, "memory", 7, cudaMemcpyHostToDevice);
  int* returned = nullptr;
  cudaMalloc(&returned, 64 * sizeof(int));
  conversions<<<1, 1>>>(7, word, returned);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  int host[7];
  cudaMemcpy(host, returned, sizeof(host), cudaMemcpyDeviceToHost);
  for (int each : host) std::printf("%d ", each);
  std::printf("\n");

  for (int i = 0; i < 3; ++i) count<<<1, 64>>>(i);
  cudaStreamSynchronize(nullptr);
  std::printf("after it\n");
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  count<<<1, 32, 0, stream>>>(3);
  cudaStreamSynchronize(stream);
  dots<<<20, 96>>>();
  cudaDeviceSynchronize();
  std::printf("\nlimit after printing %s\n",
              cudaGetErrorName(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20)));
  cudaGetLastError();

  asserts<<<1, 3>>>(returned, 0);
  std::printf("asserts that hold %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  asserts<<<1, 64>>>(returned, 0);
  std::printf("one that fails %s", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf(" %s\n", cudaGetErrorName(cudaMemcpy(host, returned, 4, cudaMemcpyDeviceToHost)));
}
