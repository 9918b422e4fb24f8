// The path of a call as a program sees it: what launches, queries, allocations and copies cost.
// Linked twice, natively and against libslate (bin/shared, bin/slate); bench/path.py runs both in
// turns and compares. One JSON line a case. Not a test: it checks results only where that is free.
//
//   path_bench calls|bandwidth|cold [--small]    the cases of that name, with distributions
//   path_bench first                        one kernel's result, then the end: for the wall clock
//   path_bench burst SECONDS                launches as fast as they go, from its input's end on
//   path_bench idle SECONDS                 one launch, then nothing
#include <cuda_runtime_api.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

__global__ void add_one(int* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}

void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "path_bench: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}
#define REQUIRE(call) require(call, #call)

double now_us() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

double quantile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

void report(const std::string& name, std::vector<double> samples_us, std::uint64_t bytes = 0) {
  std::sort(samples_us.begin(), samples_us.end());
  const double median = quantile(samples_us, 0.5);
  std::printf("{\"case\": \"%s\", \"median_us\": %.4f, \"p99_us\": %.4f, \"samples\": %zu",
              name.c_str(), median, quantile(samples_us, 0.99), samples_us.size());
  if (bytes > 0) {
    std::printf(", \"bytes\": %llu, \"gb_per_s\": %.3f", static_cast<unsigned long long>(bytes),
                static_cast<double>(bytes) / median * 1e-3);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

/// Times `body` again and again, each for itself; `between` is not timed and may be null.
template <typename Body, typename Between>
std::vector<double> sample(int count, const Body& body, const Between& between) {
  for (int i = 0; i < 3; ++i) body();
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    between(i);
    const double start = now_us();
    body();
    samples.push_back(now_us() - start);
  }
  return samples;
}

template <typename Body>
std::vector<double> sample(int count, const Body& body) {
  return sample(count, body, [](int) {});
}

/// Calls too short for a clock: each sample is the mean of a few hundred.
template <typename Body>
std::vector<double> sample_short(int count, const Body& body) {
  constexpr int kCalls = 200;
  auto samples = sample(count, [&] {
    for (int i = 0; i < kCalls; ++i) body();
  });
  for (double& one : samples) one /= kCalls;
  return samples;
}

void launch_cases(int* counter, cudaStream_t stream, int count) {
  const auto launch = [&] { add_one<<<1, 32, 0, stream>>>(counter); };
  const auto drain = [&](int i) {
    if (i % 128 == 0) REQUIRE(cudaStreamSynchronize(stream));
  };
  report("launch_call", sample(count, launch, drain));
  REQUIRE(cudaStreamSynchronize(stream));
  constexpr int kRow = 500;
  auto rows = sample(std::max(3, count / 100), [&] {
    for (int i = 0; i < kRow; ++i) launch();
    REQUIRE(cudaStreamSynchronize(stream));
  });
  for (double& one : rows) one /= kRow;
  report("launch_sustained", rows);
  report("launch_synchronize", sample(count, [&] {
           launch();
           REQUIRE(cudaStreamSynchronize(stream));
         }));
  report("launch_device_sync", sample(count, [&] {
           add_one<<<1, 32>>>(counter);
           REQUIRE(cudaDeviceSynchronize());
         }));
}

void query_cases(int* counter, cudaStream_t stream, int count) {
  cudaEvent_t event = nullptr, other = nullptr;
  REQUIRE(cudaEventCreate(&event));
  REQUIRE(cudaEventCreate(&other));
  REQUIRE(cudaEventRecord(event, stream));
  add_one<<<1, 32, 0, stream>>>(counter);
  REQUIRE(cudaEventRecord(other, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  report("event_query", sample_short(count, [&] { REQUIRE(cudaEventQuery(event)); }));
  report("stream_query", sample_short(count, [&] { REQUIRE(cudaStreamQuery(stream)); }));
  float elapsed = 0;
  report("event_elapsed",
         sample(count, [&] { REQUIRE(cudaEventElapsedTime(&elapsed, event, other)); }));
  report("event_record", sample(
                             count, [&] { REQUIRE(cudaEventRecord(event, stream)); },
                             [&](int i) {
                               if (i % 128 == 0) REQUIRE(cudaStreamSynchronize(stream));
                             }));
  REQUIRE(cudaEventDestroy(event));
  REQUIRE(cudaEventDestroy(other));
}

void memory_cases(int count) {
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 1 << 20));  // the first one maps
  void* more = nullptr;
  report("malloc_1m", sample(
                          count, [&] { REQUIRE(cudaMalloc(&more, 1 << 20)); },
                          [&](int) {
                            REQUIRE(cudaFree(more));
                            more = nullptr;
                          }));
  report("malloc_free_1m", sample(count, [&] {
           void* one = nullptr;
           REQUIRE(cudaMalloc(&one, 1 << 20));
           REQUIRE(cudaFree(one));
         }));
  int word = 7;
  report("to_device_4",
         sample(count, [&] { REQUIRE(cudaMemcpy(memory, &word, 4, cudaMemcpyHostToDevice)); }));
  word = 0;  // else a copy that never happens would look right
  report("to_host_4",
         sample(count, [&] { REQUIRE(cudaMemcpy(&word, memory, 4, cudaMemcpyDeviceToHost)); }));
  if (word != 7) require(cudaErrorUnknown, "a word that came back changed");
  REQUIRE(cudaFree(memory));
}

void run_calls(bool small) {
  const int count = small ? 50 : 5000;
  int* counter = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaMalloc(&counter, sizeof(int)));
  REQUIRE(cudaMemset(counter, 0, sizeof(int)));
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  launch_cases(counter, stream, count);
  query_cases(counter, stream, count);
  memory_cases(count);
  REQUIRE(cudaStreamDestroy(stream));
  REQUIRE(cudaFree(counter));
}

/// As many repetitions as fit into a second or so, but not too few.
int repetitions(std::uint64_t bytes, bool small) {
  if (small) return 3;
  const auto fit = static_cast<int>((4ull << 30) / std::max<std::uint64_t>(bytes, 1 << 20));
  return std::clamp(fit, 5, 1000);
}

void copy_case(const char* kind, const std::string& memory, void* to, const void* from,
               std::uint64_t bytes, cudaMemcpyKind direction, bool small) {
  report(std::string(kind) + "_" + memory,
         sample(repetitions(bytes, small),
                [&] {
                  REQUIRE(cudaMemcpy(to, from, bytes, direction));
                  if (direction == cudaMemcpyDeviceToDevice)
                    REQUIRE(cudaStreamSynchronize(nullptr));
                }),
         bytes);
}

void run_bandwidth(bool small) {
  const std::uint64_t most = small ? 4 << 20 : 4ull << 30;
  char *device = nullptr, *other = nullptr, *pinned = nullptr;
  REQUIRE(cudaMalloc(&device, most));
  REQUIRE(cudaMalloc(&other, most));
  REQUIRE(cudaMallocHost(&pinned, most));
  std::vector<char> pageable(most, 1);
  std::memset(pinned, 2, most);
  for (std::uint64_t bytes = 4; bytes <= most; bytes *= 4) {
    copy_case("to_device", "pinned", device, pinned, bytes, cudaMemcpyHostToDevice, small);
    copy_case("to_host", "pinned", pinned, device, bytes, cudaMemcpyDeviceToHost, small);
    copy_case("to_device", "pageable", device, pageable.data(), bytes, cudaMemcpyHostToDevice,
              small);
    copy_case("to_host", "pageable", pageable.data(), device, bytes, cudaMemcpyDeviceToHost, small);
    copy_case("on_device", "device", other, device, bytes, cudaMemcpyDeviceToDevice, small);
  }
  REQUIRE(cudaFreeHost(pinned));
  REQUIRE(cudaFree(device));
  REQUIRE(cudaFree(other));
}

/// Pinned memory as programs allocate it: each for itself, and many before the first is freed.
void pinned_cases(std::uint64_t bytes, int count) {
  const std::string size = bytes < 1024 ? std::to_string(bytes) : std::to_string(bytes >> 10) + "k";
  void* memory = nullptr;
  report("host_alloc_free_" + size, sample(count, [&] {
           REQUIRE(cudaMallocHost(&memory, bytes));
           REQUIRE(cudaFreeHost(memory));
         }));
  std::vector<void*> all;
  all.reserve(static_cast<std::size_t>(count) + 3);
  report("host_alloc_" + size,
         sample(count, [&] { REQUIRE(cudaMallocHost(&all.emplace_back(), bytes)); }));
  for (void* each : all) REQUIRE(cudaFreeHost(each));
}

/// Many copies of memory that is not pinned, and the wait for all: the mean of one.
void row_of_copies(std::uint64_t bytes, bool small) {
  const int count = small ? 20 : 200;
  char* device = nullptr;
  std::vector<char> host(bytes, 1);
  REQUIRE(cudaMalloc(&device, bytes));
  auto rows = sample(small ? 3 : 50, [&] {
    for (int i = 0; i < count; ++i)
      REQUIRE(cudaMemcpyAsync(device, host.data(), bytes, cudaMemcpyHostToDevice, nullptr));
    REQUIRE(cudaStreamSynchronize(nullptr));
  });
  for (double& one : rows) one /= count;
  report("to_device_row", rows, bytes);
  REQUIRE(cudaFree(device));
}

__constant__ char constants[16 << 10];
__global__ void take_constants(char* to) {
  to[threadIdx.x] = constants[threadIdx.x];
}

/// As Parboil's mri-q: constants, a kernel that reads them, and so on.
void symbol_cases(int count) {
  static char host[sizeof(constants)];
  char* device = nullptr;
  REQUIRE(cudaMalloc(&device, 256));
  report("symbol_16k_launch", sample(count, [&] {
           REQUIRE(cudaMemcpyToSymbol(constants, host, sizeof(host)));
           take_constants<<<1, 256>>>(device);
         }));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaFree(device));
}

/// What a process does once: the first copies of its life, of memory touched by nobody but itself
/// (to the device) and by nobody at all (to the host), an allocation and a free beside each.
void once_cases(std::uint64_t bytes, int rounds) {
  std::vector<double> allocation, to_device, to_host, release;
  for (int i = 0; i < rounds; ++i) {
    char* device = nullptr;
    char* const from = static_cast<char*>(std::malloc(bytes));
    char* const to = static_cast<char*>(std::malloc(bytes));
    std::memset(from, 1, bytes);
    const auto timed = [](std::vector<double>& samples, const auto& body) {
      const double start = now_us();
      body();
      samples.push_back(now_us() - start);
    };
    timed(allocation, [&] { REQUIRE(cudaMalloc(&device, bytes)); });
    timed(to_device, [&] { REQUIRE(cudaMemcpy(device, from, bytes, cudaMemcpyHostToDevice)); });
    timed(to_host, [&] { REQUIRE(cudaMemcpy(to, device, bytes, cudaMemcpyDeviceToHost)); });
    timed(release, [&] { REQUIRE(cudaFree(device)); });
    if (to[bytes - 1] != 1) require(cudaErrorUnknown, "a byte that came back changed");
    std::free(from);
    std::free(to);
    if (i > 0) continue;
    report("first_to_device", to_device, bytes);
    report("first_to_host", to_host, bytes);
    to_device.clear();
    to_host.clear();
  }
  if (rounds < 2) return;
  report("fresh_malloc_" + std::to_string(bytes >> 20) + "m", allocation);
  report("fresh_to_device", to_device, bytes);
  report("fresh_to_host", to_host, bytes);
  report("fresh_free_" + std::to_string(bytes >> 20) + "m", release);
}

void run_cold(bool small) {
  once_cases(small ? 4 << 20 : 64 << 20, small ? 2 : 10);
  if (!small) once_cases(400 << 20, 4);
  for (const std::uint64_t bytes : {64, 4 << 10, 64 << 10}) pinned_cases(bytes, small ? 20 : 500);
  for (const std::uint64_t bytes : {2 << 10, 16 << 10, 64 << 10}) row_of_copies(bytes, small);
  symbol_cases(small ? 20 : 500);
}

void first_result() {
  int* counter = nullptr;
  int result = 0;
  REQUIRE(cudaMalloc(&counter, sizeof(int)));
  REQUIRE(cudaMemset(counter, 0, sizeof(int)));
  add_one<<<1, 32>>>(counter);
  REQUIRE(cudaMemcpy(&result, counter, sizeof(int), cudaMemcpyDeviceToHost));
  if (result != 1) require(cudaErrorUnknown, "the first kernel's result");
}

/// Says when it is ready, waits until its standard input ends, and says how many launches it made.
void burst(double seconds) {
  int* counter = nullptr;
  REQUIRE(cudaMalloc(&counter, sizeof(int)));
  add_one<<<1, 32>>>(counter);
  REQUIRE(cudaDeviceSynchronize());
  std::printf("{\"case\": \"ready\"}\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  const double start = now_us();
  std::uint64_t launches = 0;
  while (now_us() - start < seconds * 1e6) {
    for (int i = 0; i < 16; ++i) add_one<<<1, 32>>>(counter);
    launches += 16;
    if (launches % 256 == 0) REQUIRE(cudaDeviceSynchronize());
  }
  REQUIRE(cudaDeviceSynchronize());
  std::printf("{\"case\": \"burst\", \"launches\": %llu, \"start_us\": %.3f, \"end_us\": %.3f}\n",
              static_cast<unsigned long long>(launches), start, now_us());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string second = argc > 2 ? argv[2] : "";
  if (what == "calls") {
    run_calls(second == "--small");
  } else if (what == "bandwidth") {
    run_bandwidth(second == "--small");
  } else if (what == "cold") {
    run_cold(second == "--small");
  } else if (what == "first") {
    first_result();
  } else if (what == "burst" && argc == 3) {
    burst(std::atof(argv[2]));
  } else if (what == "idle" && argc == 3) {
    first_result();
    std::printf("{\"case\": \"idle\"}\n");
    std::fflush(stdout);
    usleep(static_cast<unsigned>(std::atof(argv[2]) * 1e6));
  } else {
    std::fprintf(stderr,
                 "usage: path_bench calls|bandwidth|cold [--small] | first | burst|idle S\n");
    return 2;
  }
  return 0;
}
