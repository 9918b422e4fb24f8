// Atomics of system scope on managed memory: of several kernels at once, and of kernels and the
// host, as in the CUDA samples' systemWideAtomics. Nothing is lost. Work on other memory goes on.
#include <cstdio>
#include <thread>

constexpr int kBlocks = 16, kThreads = 64, kRounds = 20;
constexpr int kOfKernel = kBlocks * kThreads * kRounds;

struct Cells {
  int sum;
  unsigned wrapped;  // modulo 1000
  int most;
  int bits;
};

__managed__ int variable = 0;

__global__ void change(Cells* cells) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = 0; i < kRounds; ++i) {
    atomicAdd_system(&cells->sum, 1);
    atomicInc_system(&cells->wrapped, 999);
    atomicMax_system(&cells->most, thread);
    atomicXor_system(&cells->bits, thread);
    atomicAdd_system(&variable, 1);
  }
}

static void change_on_host(Cells* cells, int count) {
  for (int i = 0; i < count; ++i) {
    __sync_fetch_and_add(&cells->sum, 1);
    unsigned before = cells->wrapped;
    while (true) {
      const unsigned seen =
          __sync_val_compare_and_swap(&cells->wrapped, before, before >= 999 ? 0 : before + 1);
      if (seen == before) break;
      before = seen;
    }
    __sync_fetch_and_xor(&cells->bits, i);
    __sync_fetch_and_xor(&cells->bits, i);
    __sync_fetch_and_add(&variable, 1);
  }
}

static void say(const char* what, const Cells* cells, int count) {
  std::printf("%s: sum %d wrapped %d most %d bits %d variable %d\n", what, cells->sum == count,
              cells->wrapped == static_cast<unsigned>(count % 1000),
              cells->most == kBlocks * kThreads - 1, cells->bits, variable == count);
}

int main() {
  Cells* cells = nullptr;
  cudaMallocManaged(&cells, sizeof(Cells));
  cudaStream_t streams[3];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

  *cells = {};
  variable = 0;
  for (cudaStream_t stream : streams) change<<<kBlocks, kThreads, 0, stream>>>(cells);
  cudaDeviceSynchronize();
  say("kernels", cells, 3 * kOfKernel);

  for (int repeat = 0; repeat < 5; ++repeat) {
    *cells = {};
    variable = 0;
    change<<<kBlocks, kThreads>>>(cells);
    std::thread other([&] { change_on_host(cells, kOfKernel); });
    change_on_host(cells, kOfKernel);
    other.join();
    cudaDeviceSynchronize();
    say("kernel and host", cells, 3 * kOfKernel);
  }

  // A function that a stream calls does not wait for the kernels behind it.
  cudaDeviceSynchronize();
  cudaLaunchHostFunc(
      streams[0], [](void* data) { static_cast<Cells*>(data)->sum = 5; }, cells);
  change<<<kBlocks, kThreads, 0, streams[0]>>>(cells);
  cudaStreamSynchronize(streams[0]);
  std::printf("behind a host function: %d\n", cells->sum == 5 + kOfKernel);

  // System calls find the memory open after the wait.
  change<<<kBlocks, kThreads>>>(cells);
  cudaDeviceSynchronize();
  std::FILE* const file = std::tmpfile();
  std::setvbuf(file, nullptr, _IONBF, 0);
  std::printf("written %d\n", std::fwrite(cells, sizeof(Cells), 1, file) == 1);
  std::fclose(file);

  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  std::printf("free %s\n", cudaGetErrorName(cudaFree(cells)));
  return 0;
}
