// The host side that the CUDA programs of this folder share: options, device buffers, timing,
// hashing, checking, the report. Ordinary CUDA runtime API throughout; nothing here knows slate.
//
// Exit status of every program: 0 the check passed (or --no-check), 1 it failed, 2 a CUDA or file
// error, 64 wrong options. One thread.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace slate::kernels {

/// Prints the error's name and text to stderr and exits with 2 unless `error` is cudaSuccess.
void require(cudaError_t error, const char* call);

#define SLATE_REQUIRE(call) ::slate::kernels::require((call), #call)

/// The fixed generator of all inputs: a bijective scramble of (seed, index), the same on every
/// machine.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (seed << 56) + index * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Uniform in [low, high), from 24 random bits.
inline float uniform(std::uint64_t seed, std::uint64_t index, float low, float high) {
  return low + (high - low) * (static_cast<float>(mix(seed, index) >> 40) * 0x1p-24f);
}

std::vector<float> uniform_floats(std::uint64_t seed, std::size_t count, float low, float high);

constexpr unsigned blocks_for(std::uint64_t items, unsigned per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

/// Half the spacing of floats at 1: the largest relative error of one rounding.
inline constexpr double kFloatRounding = 0x1p-24;

/// An array in device memory; any failure ends the program through require().
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    SLATE_REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
  }
  explicit DeviceBuffer(const std::vector<T>& contents) : DeviceBuffer(contents.size()) {
    SLATE_REQUIRE(cudaMemcpy(data_, contents.data(), bytes(), cudaMemcpyHostToDevice));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept : data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr) cudaFree(data_);
  }

  T* data() { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  std::vector<T> download() const {
    std::vector<T> contents(count_);
    SLATE_REQUIRE(cudaMemcpy(contents.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return contents;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

struct Description {
  const char* name;
  const char* summary;
  const char* size_meaning;
  std::uint64_t default_size;
  std::uint64_t max_size;
};

/// One run of one program: what the options ask for, and what is to be reported at the end.
class Run {
 public:
  std::uint64_t size() const { return size_; }
  bool wants_check() const { return check_; }

  /// Calls `launch` --reps times and times each by a pair of events on `stream`. `prepare`, not
  /// timed, puts the inputs back before each, so that any number of repetitions gives the result of
  /// one. With --barrier it first launches --warm times and waits for the file of that name.
  void time(const std::function<void()>& launch, cudaStream_t stream = nullptr) {
    time([] {}, launch, stream);
  }
  void time(const std::function<void()>& prepare, const std::function<void()>& launch,
            cudaStream_t stream = nullptr);

  /// Hands over results, which are hashed and written to --output in the order of the calls.
  template <typename T>
  void add_output(const std::vector<T>& values) {
    add_output(values.data(), values.size() * sizeof(T));
  }

  /// Calls `compare` with every index below `count`, or with `limit` of them, one in each of
  /// `limit` equal stretches, where there are more.
  template <typename Compare>
  void for_sample(std::uint64_t count, std::uint64_t limit, Compare compare) {
    if (count <= limit) {
      for (std::uint64_t i = 0; i < count; ++i) compare(i);
      return;
    }
    for (std::uint64_t k = 0; k < limit; ++k) {
      const std::uint64_t begin = k * count / limit, end = (k + 1) * count / limit;
      compare(begin + mix(99, k) % (end - begin));
    }
    compare(count - 1);
  }

  /// The check passes only while |got - wanted| <= tolerance everywhere.
  void compare(double got, double wanted, double tolerance) {
    const double error = std::fabs(got - wanted);
    ++checked_;
    if (!(error <= max_error_)) max_error_ = error;
    if (!(error <= tolerance)) ++wrong_;
  }
  template <typename T>
  void compare_exact(T got, T wanted) {
    compare(static_cast<double>(got), static_cast<double>(wanted), 0.0);
  }

 private:
  friend int run_program(const Description&, int, char**, void (*)(Run&));

  void add_output(const void* data, std::size_t bytes);
  void repeat(int reps, const std::function<void()>& prepare, const std::function<void()>& launch,
              cudaStream_t stream);
  void wait_at_barrier() const;
  int report(const Description& description);

  std::uint64_t size_ = 0;
  int reps_ = 1;
  bool json_ = false;
  bool check_ = true;
  int warm_ = 0;
  std::string barrier_path_;
  std::string output_path_;

  double started_ms_ = 0;
  double total_ms_ = 0;
  double loop_started_ms_ = 0;  // of the steady clock, which processes share
  double loop_ended_ms_ = 0;
  double loop_ms_ = 0;
  std::vector<float> rep_ms_;
  std::uint64_t hash_ = 0;
  std::FILE* output_ = nullptr;
  std::uint64_t checked_ = 0;
  std::uint64_t wrong_ = 0;
  double max_error_ = 0;
};

/// The main() of a program: reads the options, calls `body`, reports, returns the exit status.
/// `body` calls time() once, add_output() for all results, and compare() if wants_check().
int run_program(const Description& description, int argc, char** argv, void (*body)(Run&));

}  // namespace slate::kernels
