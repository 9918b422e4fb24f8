// What program.h declares: the option table, the timing loop, the hash and the report.
#include "program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

namespace slate::kernels {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitError = 2;
constexpr int kExitUsage = 64;

double now_ms() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since_start).count();
}

/// FNV-1a over 64-bit words in four independent lanes (a byte at a time would take seconds for a
/// gigabyte), each step followed by a rotation so that high bits reach low ones.
std::uint64_t hash_bytes(std::uint64_t seed, const void* data, std::size_t bytes) {
  constexpr std::uint64_t kPrime = 0x100000001b3u;
  std::array<std::uint64_t, 4> lanes;
  for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] = 0xcbf29ce484222325u ^ mix(l, seed);
  const auto* from = static_cast<const unsigned char*>(data);
  for (std::size_t at = 0; at < bytes; at += sizeof(lanes)) {
    std::array<std::uint64_t, 4> words{};
    std::memcpy(words.data(), from + at, std::min(bytes - at, sizeof(words)));
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      const std::uint64_t product = (lanes[l] ^ words[l]) * kPrime;
      lanes[l] = (product << 31) | (product >> 33);
    }
  }
  std::uint64_t hash = mix(5, bytes);
  for (const std::uint64_t lane : lanes) hash = mix(6, hash ^ lane);
  return hash;
}

class Event {
 public:
  Event() { SLATE_REQUIRE(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

float median(std::vector<float> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void require(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s: %s\n", call, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(kExitError);
}

std::vector<float> uniform_floats(std::uint64_t seed, std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = uniform(seed, i, low, high);
  return values;
}

void Run::time(const std::function<void()>& prepare, const std::function<void()>& launch,
               cudaStream_t stream) {
  repeat(warm_, prepare, launch, stream);
  rep_ms_.clear();
  wait_at_barrier();
  loop_started_ms_ = now_ms();
  repeat(reps_, prepare, launch, stream);
  loop_ms_ = loop_ended_ms_ - loop_started_ms_;
}

/// Tells by an empty file of its own that it is there, and waits for the one that all wait for.
void Run::wait_at_barrier() const {
  if (barrier_path_.empty()) return;
  const std::string mine = barrier_path_ + "." + std::to_string(getpid());
  std::FILE* const file = std::fopen(mine.c_str(), "wb");
  if (file == nullptr) {
    std::perror(mine.c_str());
    std::exit(kExitError);
  }
  std::fclose(file);
  while (access(barrier_path_.c_str(), F_OK) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Run::repeat(int reps, const std::function<void()>& prepare,
                 const std::function<void()>& launch, cudaStream_t stream) {
  // Batches keep the device busy between repetitions without an event pair for each of them.
  constexpr int kBatch = 4096;
  const int batch = std::min(reps, kBatch);
  const std::vector<Event> start(static_cast<std::size_t>(batch));
  const std::vector<Event> stop(static_cast<std::size_t>(batch));
  for (int done = 0; done < reps; done += batch) {
    const std::size_t count = static_cast<std::size_t>(std::min(batch, reps - done));
    for (std::size_t i = 0; i < count; ++i) {
      prepare();
      SLATE_REQUIRE(cudaEventRecord(start[i].get(), stream));
      launch();
      require(cudaGetLastError(), "kernel launch");
      SLATE_REQUIRE(cudaEventRecord(stop[i].get(), stream));
    }
    SLATE_REQUIRE(cudaEventSynchronize(stop[count - 1].get()));
    loop_ended_ms_ = now_ms();
    for (std::size_t i = 0; i < count; ++i) {
      float elapsed = 0;
      SLATE_REQUIRE(cudaEventElapsedTime(&elapsed, start[i].get(), stop[i].get()));
      rep_ms_.push_back(elapsed);
    }
  }
  SLATE_REQUIRE(cudaDeviceSynchronize());
}

void Run::add_output(const void* data, std::size_t bytes) {
  if (total_ms_ == 0) total_ms_ = now_ms() - started_ms_;
  hash_ = hash_bytes(hash_, data, bytes);
  if (output_path_.empty()) return;
  if (output_ == nullptr) output_ = std::fopen(output_path_.c_str(), "wb");
  if (output_ == nullptr || std::fwrite(data, 1, bytes, output_) != bytes) {
    std::perror(output_path_.c_str());
    std::exit(kExitError);
  }
}

int Run::report(const Description& description) {
  if (output_ != nullptr && std::fclose(output_) != 0) {
    std::perror(output_path_.c_str());
    return kExitError;
  }
  cudaDeviceProp properties;
  SLATE_REQUIRE(cudaGetDeviceProperties(&properties, 0));
  // A check that compared nothing has not passed.
  const bool ok = !check_ || (checked_ > 0 && wrong_ == 0);
  const char* result = ok ? "ok" : "FAILED";
  const double kernel_ms = median(rep_ms_);
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(hash_));
  if (json_) {
    nlohmann::ordered_json line;
    line["program"] = description.name;
    line["device"] = properties.name;
    line["size"] = size_;
    line["reps"] = reps_;
    line["kernel_ms"] = kernel_ms;
    line["total_ms"] = total_ms_;
    line["loop_started_ms"] = loop_started_ms_;
    line["loop_ms"] = loop_ms_;
    line["hash"] = hash;
    line["checked"] = checked_;
    line["max_error"] = max_error_;
    line["result"] = result;
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%s on %s: size %llu, %d x %.4f ms (total %.1f ms), hash %s\n", description.name,
                properties.name, static_cast<unsigned long long>(size_), reps_, kernel_ms,
                total_ms_, hash);
    std::printf("checked %llu values, largest error %.3g: %s\n",
                static_cast<unsigned long long>(checked_), max_error_, result);
  }
  return ok ? 0 : kExitFailed;
}

int run_program(const Description& description, int argc, char** argv, void (*body)(Run&)) {
  Run run;
  run.started_ms_ = now_ms();
  run.size_ = description.default_size;
  bool no_check = false;
  CLI::App app(description.summary, description.name);
  app.add_option("--size", run.size_, description.size_meaning)
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, description.max_size));
  app.add_option("--reps", run.reps_, "launches; the result is that of one")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warm", run.warm_, "launches before those that are timed")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--barrier", run.barrier_path_,
                 "write FILE.<pid> when ready, and wait for FILE before the timed launches");
  app.add_flag("--json", run.json_, "report one line of JSON");
  app.add_flag("--no-check", no_check, "do not compare with the CPU");
  app.add_option("--output", run.output_path_, "write the raw bytes of the result to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  run.check_ = !no_check;
  body(run);
  return run.report(description);
}

}  // namespace slate::kernels
