// What the link to the host carries: pinned copies in both directions at once, each on a stream of
// its own. It is the bound of what slated can move per second when programs change places.
//
//   copy_rate SECONDS [MEGABYTES]      one JSON line: bytes per second in each direction
//
// Exit status 1: a CUDA error.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "copy_rate: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}
#define REQUIRE(call) require(call, #call)

double seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// One direction: a few copies are in flight, and those that have ended count.
struct Direction {
  static constexpr int kInFlight = 4;
  cudaMemcpyKind kind;
  std::size_t size;
  void *device = nullptr, *host = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t ends[kInFlight] = {};
  std::size_t begun = 0, ended = 0;

  void prepare() {
    REQUIRE(cudaMalloc(&device, size));
    REQUIRE(cudaMallocHost(&host, size));
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t& end : ends) REQUIRE(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  }

  void advance() {
    while (ended < begun) {
      const cudaError_t code = cudaEventQuery(ends[ended % kInFlight]);
      if (code == cudaErrorNotReady) break;
      require(code, "cudaEventQuery");
      ++ended;
    }
    for (; begun - ended < kInFlight; ++begun) {
      const bool up = kind == cudaMemcpyHostToDevice;
      REQUIRE(cudaMemcpyAsync(up ? device : host, up ? host : device, size, kind, stream));
      REQUIRE(cudaEventRecord(ends[begun % kInFlight], stream));
    }
  }

  void release() {
    REQUIRE(cudaStreamSynchronize(stream));
    for (const cudaEvent_t end : ends) REQUIRE(cudaEventDestroy(end));
    REQUIRE(cudaStreamDestroy(stream));
    REQUIRE(cudaFreeHost(host));
    REQUIRE(cudaFree(device));
  }
};

}  // namespace

int main(int count, char** words) {
  const double limit = count > 1 ? std::atof(words[1]) : 1;
  const std::size_t size = static_cast<std::size_t>(count > 2 ? std::atoi(words[2]) : 64) << 20;
  Direction up{cudaMemcpyHostToDevice, size}, down{cudaMemcpyDeviceToHost, size};
  up.prepare();
  down.prepare();
  const double begin = seconds();
  double now = begin;
  for (; now - begin < limit; now = seconds()) {
    up.advance();
    down.advance();
  }
  const double rate = static_cast<double>(size) / (now - begin);
  std::printf("{\"to_device\": %.0f, \"to_host\": %.0f}\n", rate * static_cast<double>(up.ended),
              rate * static_cast<double>(down.ended));
  up.release();
  down.release();
  return 0;
}
