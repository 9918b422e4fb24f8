// Mixed commands from several threads, checked: launches, fills, copies of every kind, events
// between streams, in random order, against a model on the host. Ends with 1 at the first wrong
// word. Linked natively and against libslate as path_bench; started by bench/path.py.
//
//   path_stress [--commands N] [--threads N] [--seed N]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kWords = 8192;
constexpr unsigned kSlice = 128;  // that a launch changes

__global__ void step(unsigned* words, unsigned addend) {
  words[threadIdx.x] = words[threadIdx.x] * 3 + addend;
}

void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "path_stress: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}
#define REQUIRE(call) require(call, #call)

template <typename T>
T* pinned(std::size_t count) {
  void* memory = nullptr;
  REQUIRE(cudaMallocHost(&memory, count * sizeof(T)));
  return static_cast<T*>(memory);
}

/// One stream, its memory, and what that has to hold.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  unsigned* device = nullptr;
  std::vector<unsigned> model = std::vector<unsigned>(kWords);

  Lane() {
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, kWords * sizeof(unsigned)));
    device = static_cast<unsigned*>(memory);
    REQUIRE(cudaMemsetAsync(device, 0, kWords * sizeof(unsigned), stream));
  }
  ~Lane() {
    REQUIRE(cudaFree(device));
    REQUIRE(cudaEventDestroy(event));
    REQUIRE(cudaStreamDestroy(stream));
  }
  Lane(const Lane&) = delete;
};

/// One thread's share: two lanes that now and then take data from one another.
class Worker {
 public:
  explicit Worker(unsigned seed)
      : random_(seed),
        constants_(pinned<unsigned>(kWords)),
        landing_(pinned<unsigned>(kWords)),
        pageable_(kWords) {
    for (unsigned i = 0; i < kWords; ++i) constants_[i] = static_cast<unsigned>(random_());
  }
  ~Worker() {
    REQUIRE(cudaFreeHost(constants_));
    REQUIRE(cudaFreeHost(landing_));
  }
  Worker(const Worker&) = delete;

  /// Commands that it sent.
  std::uint64_t run(std::uint64_t commands) {
    check_mapped();
    while (sent_ < commands) one();
    for (Lane& lane : lanes_) check(lane);
    return sent_;
  }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  void one() {
    Lane& lane = lanes_[below(2)];
    ++sent_;
    switch (below(16)) {
      case 0:
        return fill(lane);
      case 1:
      case 2:
        return copy_constants(lane);
      case 3:
        return copy_pageable(lane, 64 + below(kWords - 64));
      case 4:
      case 5:
        return copy_pageable(lane, 1 + below(63));
      case 6:
        return copy_on_device(lane);
      case 7:
        return below(8) == 0 ? check(lane) : take_from_other(lane);
      default:
        return launch(lane);
    }
  }
  /// Kernels reach pinned memory.
  void check_mapped() {
    void* mapped = nullptr;
    REQUIRE(cudaHostGetDevicePointer(&mapped, landing_, 0));
    for (unsigned i = 0; i < kSlice; ++i) landing_[i] = i;
    step<<<1, kSlice, 0, lanes_[0].stream>>>(static_cast<unsigned*>(mapped), 7);
    REQUIRE(cudaStreamSynchronize(lanes_[0].stream));
    for (unsigned i = 0; i < kSlice; ++i) {
      if (landing_[i] == i * 3 + 7) continue;
      std::fprintf(stderr, "path_stress: word %u of pinned memory is %u\n", i, landing_[i]);
      std::exit(1);
    }
  }
  void launch(Lane& lane) {
    const unsigned first = below(kWords - kSlice), addend = below(1000);
    step<<<1, kSlice, 0, lane.stream>>>(lane.device + first, addend);
    for (unsigned i = first; i < first + kSlice; ++i) lane.model[i] = lane.model[i] * 3 + addend;
  }
  void fill(Lane& lane) {
    const unsigned first = below(kWords), count = 1 + below(kWords - first), value = below(256);
    REQUIRE(cudaMemsetAsync(lane.device + first, static_cast<int>(value), count * 4, lane.stream));
    std::fill_n(lane.model.begin() + first, count, value * 0x01010101u);
  }
  void copy_constants(Lane& lane) {
    const unsigned first = below(kWords), count = 1 + below(kWords - first);
    const unsigned from = below(kWords - count + 1);
    REQUIRE(cudaMemcpyAsync(lane.device + first, constants_ + from, count * 4,
                            cudaMemcpyHostToDevice, lane.stream));
    std::copy_n(constants_ + from, count, lane.model.begin() + first);
  }
  /// The source is changed right after the call, as it may be.
  void copy_pageable(Lane& lane, unsigned count) {
    const unsigned first = below(kWords - count + 1);
    for (unsigned i = 0; i < count; ++i) lane.model[first + i] = pageable_[i] = below(~0u);
    REQUIRE(cudaMemcpyAsync(lane.device + first, pageable_.data(), count * 4,
                            cudaMemcpyHostToDevice, lane.stream));
    std::fill_n(pageable_.begin(), count, 0xdeadbeefu);
  }
  void copy_on_device(Lane& lane) {
    const unsigned count = 1 + below(kWords / 2), half = kWords / 2;
    REQUIRE(cudaMemcpyAsync(lane.device + half, lane.device, std::min(count, half) * 4,
                            cudaMemcpyDeviceToDevice, lane.stream));
    std::copy_n(lane.model.begin(), std::min(count, half), lane.model.begin() + half);
  }
  void take_from_other(Lane& lane) {
    Lane& other = &lane == &lanes_[0] ? lanes_[1] : lanes_[0];
    REQUIRE(cudaEventRecord(other.event, other.stream));
    REQUIRE(cudaStreamWaitEvent(lane.stream, other.event, 0));
    REQUIRE(cudaMemcpyAsync(lane.device, other.device, kWords * 2, cudaMemcpyDeviceToDevice,
                            lane.stream));
    REQUIRE(cudaEventRecord(lane.event, lane.stream));
    REQUIRE(cudaStreamWaitEvent(other.stream, lane.event, 0));
    std::copy_n(other.model.begin(), kWords / 2, lane.model.begin());
    sent_ += 4;
  }
  void check(Lane& lane) {
    const bool straight = below(2) == 0;
    unsigned* const to = straight ? landing_ : pageable_.data();
    REQUIRE(cudaMemcpyAsync(to, lane.device, kWords * 4, cudaMemcpyDeviceToHost, lane.stream));
    REQUIRE(cudaEventRecord(lane.event, lane.stream));
    if (straight && below(2) == 0) {
      cudaError_t reached = cudaErrorNotReady;
      while (reached == cudaErrorNotReady) {
        reached = cudaEventQuery(lane.event);
        std::this_thread::yield();
      }
      REQUIRE(reached);
    } else {
      REQUIRE(cudaStreamSynchronize(lane.stream));
      REQUIRE(cudaStreamQuery(lane.stream));
    }
    for (unsigned i = 0; i < kWords; ++i) {
      if (to[i] == lane.model[i]) continue;
      std::fprintf(stderr, "path_stress: word %u is %u, not %u, after %llu commands\n", i, to[i],
                   lane.model[i], static_cast<unsigned long long>(sent_));
      std::exit(1);
    }
  }

  std::mt19937 random_;
  unsigned* const constants_;
  unsigned* const landing_;
  std::vector<unsigned> pageable_;
  Lane lanes_[2];
  std::uint64_t sent_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t commands = 40'000;
  unsigned threads = 8, seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--commands") commands = value;
    if (name == "--threads") threads = static_cast<unsigned>(value);
    if (name == "--seed") seed = static_cast<unsigned>(value);
  }
  std::atomic<std::uint64_t> sent{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      Worker worker(seed * 1000 + i);
      sent += worker.run(commands / threads);
    });
  }
  for (std::thread& worker : workers) worker.join();
  REQUIRE(cudaDeviceSynchronize());
  std::printf("{\"case\": \"stress\", \"commands\": %llu, \"threads\": %u}\n",
              static_cast<unsigned long long>(sent.load()), threads);
  return 0;
}
