// Two processes share device memory and an event. The child's part is a process of its own (this
// program again), since CUDA does not go over fork(). What they say to each other goes by pipes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

constexpr int kCount = 1 << 16;

__global__ void fill(int* values, int first) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = first + i;
}
__global__ void twice(int* values) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

struct Offer {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t filled;
};

static bool take(int fd, void* to, std::size_t bytes) {
  return read(fd, to, bytes) == static_cast<ssize_t>(bytes);
}
static bool give(int fd, const void* from, std::size_t bytes) {
  return write(fd, from, bytes) == static_cast<ssize_t>(bytes);
}

static int child(int in, int out) {
  Offer offer;
  if (!take(in, &offer, sizeof(offer))) return 1;
  int* memory = nullptr;
  int* again = nullptr;
  cudaEvent_t filled = nullptr;
  const cudaError_t opened = cudaIpcOpenMemHandle(reinterpret_cast<void**>(&memory), offer.memory,
                                                  cudaIpcMemLazyEnablePeerAccess);
  const cudaError_t twice_opened = cudaIpcOpenMemHandle(
      reinterpret_cast<void**>(&again), offer.memory, cudaIpcMemLazyEnablePeerAccess);
  const cudaError_t event = cudaIpcOpenEventHandle(&filled, offer.filled);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaStreamWaitEvent(stream, filled, 0);
  twice<<<kCount / 256, 256, 0, stream>>>(memory);
  int last = 0;
  cudaMemcpyAsync(&last, memory + kCount - 1, sizeof(last), cudaMemcpyDeviceToHost, stream);
  const cudaError_t done = cudaStreamSynchronize(stream);
  std::printf("child %s %s %s same %d last %d %s\n", cudaGetErrorName(opened),
              cudaGetErrorName(twice_opened), cudaGetErrorName(event), memory == again, last,
              cudaGetErrorName(done));
  std::fflush(stdout);
  const char ready = 'r';
  // The parent frees its memory; this process has it all the same until it closes it.
  char freed = 0;
  if (!give(out, &ready, 1) || !take(in, &freed, 1)) return 1;
  const cudaError_t closed = cudaIpcCloseMemHandle(memory);
  cudaMemcpy(&last, memory + 1, sizeof(last), cudaMemcpyDeviceToHost);
  const cudaError_t closed_again = cudaIpcCloseMemHandle(again);
  std::printf("child still %d closed %s %s\n", last, cudaGetErrorName(closed),
              cudaGetErrorName(closed_again));
  std::printf("child no more %s\n", cudaGetErrorName(cudaIpcCloseMemHandle(memory)));
  Offer wild;
  std::memset(&wild, 7, sizeof(wild));
  cudaGetLastError();
  std::printf("wild event %s\n", cudaGetErrorName(cudaIpcOpenEventHandle(&filled, wild.filled)));
  return 0;
}

static int parent(int in, int out) {
  int* memory = nullptr;
  cudaMalloc(&memory, kCount * sizeof(int));
  Offer offer;
  cudaEvent_t filled = nullptr;
  cudaEventCreateWithFlags(&filled, cudaEventInterprocess | cudaEventDisableTiming);
  const cudaError_t memory_given = cudaIpcGetMemHandle(&offer.memory, memory);
  const cudaError_t event_given = cudaIpcGetEventHandle(&offer.filled, filled);
  std::printf("parent %s %s\n", cudaGetErrorName(memory_given), cudaGetErrorName(event_given));
  cudaEvent_t plain = nullptr;
  cudaEventCreate(&plain);
  cudaIpcEventHandle_t none;
  std::printf("plain event %s\n", cudaGetErrorName(cudaIpcGetEventHandle(&none, plain)));
  std::fflush(stdout);
  fill<<<kCount / 256, 256>>>(memory, 100);
  cudaEventRecord(filled);
  char ready = 0;
  if (!give(out, &offer, sizeof(offer)) || !take(in, &ready, 1)) return 1;
  int first = 0;
  cudaMemcpy(&first, memory, sizeof(first), cudaMemcpyDeviceToHost);
  std::printf("parent sees %d free %s\n", first, cudaGetErrorName(cudaFree(memory)));
  std::fflush(stdout);
  if (!give(out, &ready, 1)) return 1;
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3) return child(argv[1][0] - 'a', argv[2][0] - 'a');
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return 1;
  const pid_t pid = fork();
  if (pid == 0) {
    const char in[] = {static_cast<char>('a' + down[0]), 0};
    const char out[] = {static_cast<char>('a' + up[1]), 0};
    execl("/proc/self/exe", argv[0], in, out, static_cast<char*>(nullptr));
    _exit(1);
  }
  const int code = parent(up[0], down[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  std::printf("%d %d\n", code, status);
}
