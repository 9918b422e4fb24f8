// A program that checks every word which it computes, for some seconds, and tells its longest
// pause. It stands beside programs that fault.
//
//   victim SECONDS [MEGABYTES [MILLISECONDS]]
//
// Each round fills memory by a kernel, computes other memory from it by a second one, copies that
// back and compares all of it. A third array is written once, and compared at the end. A pause of
// at least MILLISECONDS is told with its end, by the monotonic clock. Exit status 0: every word was
// right and no call failed.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

__global__ void fill(std::uint32_t* out, std::uint32_t words, std::uint32_t seed) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += gridDim.x * blockDim.x)
    out[i] = i * 2654435761u + seed;
}

__global__ void mix(const std::uint32_t* in, std::uint32_t* out, std::uint32_t words) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += gridDim.x * blockDim.x) {
    std::uint32_t value = in[i];
    for (int round = 0; round < 20; ++round) value = value * 1664525u + 1013904223u;
    out[i] = value ^ in[words - 1 - i];
  }
}

std::uint32_t filled(std::uint32_t i, std::uint32_t seed) {
  return i * 2654435761u + seed;
}

std::uint32_t mixed(std::uint32_t i, std::uint32_t words, std::uint32_t seed) {
  std::uint32_t value = filled(i, seed);
  for (int round = 0; round < 20; ++round) value = value * 1664525u + 1013904223u;
  return value ^ filled(words - 1 - i, seed);
}

void count_round(void* rounds) {
  ++*static_cast<std::uint32_t*>(rounds);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  std::exit(1);
}

double seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

int main(int count, char** arguments) {
  const double limit = count > 1 ? std::atof(arguments[1]) : 1;
  const std::uint32_t words = (count > 2 ? std::atoi(arguments[2]) : 1) << 18;
  const double told = count > 3 ? std::atof(arguments[3]) * 1e-3 : limit;
  const std::size_t bytes = words * sizeof(std::uint32_t);
  std::uint32_t *in = nullptr, *out = nullptr, *old = nullptr;
  check(cudaMalloc(&in, bytes), "cudaMalloc");
  check(cudaMalloc(&out, bytes), "cudaMalloc");
  check(cudaMalloc(&old, bytes), "cudaMalloc");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const int blocks = 128, threads = 128;
  fill<<<blocks, threads>>>(old, words, 77);
  std::vector<std::uint32_t> back(words);
  double longest = 0, first = seconds(), last = first;
  std::uint32_t round = 0, counted = 0;
  for (; last - first < limit; ++round) {
    fill<<<blocks, threads, 0, stream>>>(in, words, round);
    mix<<<blocks, threads, 0, stream>>>(in, out, words);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpyAsync(back.data(), out, bytes, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaLaunchHostFunc(stream, count_round, &counted), "cudaLaunchHostFunc");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (counted != round + 1) {
      std::printf("round %u: %u host functions ran\n", round, counted);
      return 1;
    }
    // Every word on few rounds, as the host takes longer than the device; some words always.
    const std::uint32_t step = round % 16 == 0 ? 1 : 61;
    for (std::uint32_t i = round % step; i < words; i += step) {
      if (back[i] == mixed(i, words, round)) continue;
      std::printf("round %u: word %u is %08x, not %08x\n", round, i, back[i],
                  mixed(i, words, round));
      return 1;
    }
    const double now = seconds();
    if (now - last > longest) longest = now - last;
    if (now - last >= told) {
      std::printf("at %.3f s: %.1f ms\n", now, (now - last) * 1e3);
      std::fflush(stdout);
    }
    last = now;
  }
  check(cudaMemcpy(back.data(), old, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (std::uint32_t i = 0; i < words; ++i) {
    if (back[i] == filled(i, 77)) continue;
    std::printf("old memory: word %u is %08x\n", i, back[i]);
    return 1;
  }
  std::printf("%u rounds, longest %.1f ms\n", round, longest * 1e3);
  return 0;
}
