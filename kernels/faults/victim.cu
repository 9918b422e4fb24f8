// A program that checks every word which it computes, for some seconds, and tells its longest
// pause. It stands beside programs that fault.
//
//   victim SECONDS [MEGABYTES [MILLISECONDS]]
//
// Each round fills memory by a kernel, computes other memory from it by a second one, copies that
// back and compares all of it. A third array is written once, and compared at the end. Times
// between events are asked for in each round: of this round, of the first one, and from there to
// here. A pause of at least MILLISECONDS is told with its end, by the monotonic clock. Exit status
// 0: every word was right and no call failed.
#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
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

cudaEvent_t make_event() {
  cudaEvent_t event;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

float elapsed(cudaEvent_t start, cudaEvent_t stop) {
  float ms = -1;
  check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
  if (ms >= 0) return ms;
  std::printf("%g ms between an event and a later one\n", ms);
  std::exit(1);
}

/// The events of the first round, and those of the present one.
class Events {
 public:
  void begin(cudaStream_t stream) { record(round_ == 0 ? first_ : begin_, stream); }
  void end(cudaStream_t stream) { record(round_ == 0 ? second_ : end_, stream); }
  /// The time that was told stays. Requires: the round's work is done.
  void compare() {
    const float told = elapsed(first_, second_);
    if (round_ == 0) told_ = told;
    if (std::fabs(told - told_) > 1e-5f * (1 + told_)) {
      std::printf("round %u: %.6f ms between two events, which were %.6f\n", round_, told, told_);
      std::exit(1);
    }
    if (round_ > 0) {
      elapsed(begin_, end_);
      elapsed(second_, end_);
    }
    ++round_;
  }

 private:
  static void record(cudaEvent_t event, cudaStream_t stream) {
    check(cudaEventRecord(event, stream), "cudaEventRecord");
  }

  const cudaEvent_t first_ = make_event(), second_ = make_event();
  const cudaEvent_t begin_ = make_event(), end_ = make_event();
  std::uint32_t round_ = 0;
  float told_ = 0;
};

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
  Events events;
  const cudaEvent_t untold = make_event();
  check(cudaEventRecord(untold, stream), "cudaEventRecord");
  double longest = 0, first = seconds(), last = first;
  std::uint32_t round = 0, counted = 0;
  for (; last - first < limit; ++round) {
    events.begin(stream);
    fill<<<blocks, threads, 0, stream>>>(in, words, round);
    mix<<<blocks, threads, 0, stream>>>(in, out, words);
    check(cudaGetLastError(), "launch");
    events.end(stream);
    check(cudaMemcpyAsync(back.data(), out, bytes, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaLaunchHostFunc(stream, count_round, &counted), "cudaLaunchHostFunc");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    events.compare();
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
  const cudaEvent_t last_event = make_event();
  check(cudaEventRecord(last_event, stream), "cudaEventRecord");
  check(cudaEventSynchronize(last_event), "cudaEventSynchronize");
  elapsed(untold, last_event);
  check(cudaMemcpy(back.data(), old, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (std::uint32_t i = 0; i < words; ++i) {
    if (back[i] == filled(i, 77)) continue;
    std::printf("old memory: word %u is %08x\n", i, back[i]);
    return 1;
  }
  std::printf("%u rounds, longest %.1f ms\n", round, longest * 1e3);
  return 0;
}
