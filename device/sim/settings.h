// Settings of the simulated GPU, as in the device string behind "sim:". The table with types,
// ranges and defaults is in README.md; parse_settings() is its only reader. A plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::sim {

/// Cost of one finished launch. `nanoseconds`: host time from its first block to its last.
struct LaunchStatistics {
  std::string function;
  std::uint64_t blocks = 0;
  std::uint64_t thread_instructions = 0;
  std::uint64_t nanoseconds = 0;
};

inline constexpr std::uint32_t kMostSms = 1024;

struct Settings {
  std::uint32_t sms = 16;
  std::uint32_t unit = 1;             // SMs of one unit of partitions; the last one may have fewer
  std::uint64_t memory = 2ull << 30;  // bytes, in whole chunks of 2 MiB
  std::uint32_t threads = 0;          // host threads; 0: one for each hardware core
  std::optional<std::uint64_t> seed;  // set: a random schedule on one host thread, reproducible
  std::uint32_t cc_major = 9;
  std::uint32_t cc_minor = 0;
  double max_kernel_seconds = 0;  // 0: no limit
  std::uint32_t quantum = 256;    // warp instructions of one warp's turn
  bool fault_ends_all = false;    // whether a fault loses the device, as it does a GPU
  std::uint8_t leftovers = 0;  // byte of registers, shared and local memory that nobody has written
  bool strict = false;         // whether unknown instructions fail find_function, not the kernel

  /// Called once for every launch that ran to its end, from the thread that finished it. Set by
  /// code only; benchmarks use it.
  std::function<void(const LaunchStatistics&)> observer;
};

/// Parses "KEY=VALUE,KEY=VALUE"; empty text gives the defaults. Errors: kInvalidValue naming the
/// offending pair.
Result<Settings> parse_settings(std::string_view text);

/// Host threads that run with these settings: 1 with a seed, else `threads` or the number of cores;
/// at most one for each SM, and at least 1.
std::uint32_t host_threads(const Settings& settings);

}  // namespace slate::sim
