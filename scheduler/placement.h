// Placement: the SMs that a launch may use, and how many of its blocks each of them holds; also
// forms and the machine. Plain values. A unit is the device's smallest hardware partition: 8 SMs on
// an H200 (12 in the last one), 1 SM on sim by default. Thread: any.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace slate::scheduler {

/// How a kernel is executed.
enum class Form : std::uint8_t { kNative, kWorker, kSlice };

constexpr std::string_view form_name(Form form) {
  constexpr std::string_view kNames[] = {"native", "worker", "slice"};
  return kNames[static_cast<std::size_t>(form)];
}

/// The units [first, first + count). smCompactor (SAC 2021) has a table with a number of blocks for
/// each SM; here all SMs of a placement have the same number.
struct Placement {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t blocks_per_sm = 0;  // worker form only: most blocks on each SM; 0: as many as fit
  bool ahead = false;               // whether its blocks go before waiting blocks of other sessions

  bool empty() const { return count == 0; }
  std::uint32_t end() const { return first + count; }
  bool overlaps(const Placement& other) const { return first < other.end() && other.first < end(); }
  auto operator<=>(const Placement&) const = default;
};

/// The device as policies see it.
struct Machine {
  std::uint32_t sm_count = 1;
  std::uint32_t units = 1;         // 1: the device cannot be partitioned
  std::uint32_t sms_per_unit = 1;  // SMs of every unit but the last, which may differ
  double peak_gflops = 0;          // 10^9 single-precision FLOP/s; 0: unknown
  double peak_gbytes = 0;          // 10^9 bytes/s of the memory; 0: unknown

  /// The placement on all units, with as many blocks as fit.
  Placement whole() const { return {.first = 0, .count = units}; }
  bool has_all_units(const Placement& placement) const {
    return placement.first == 0 && placement.count >= units;
  }
  /// Whether it is all units, with as many blocks as fit.
  bool is_whole(const Placement& placement) const {
    return has_all_units(placement) && placement.blocks_per_sm == 0;
  }
  /// SMs of the placement.
  std::uint32_t sms(const Placement& placement) const {
    const std::uint32_t all = placement.count * sms_per_unit;
    if (placement.end() < units || placement.count == 0) return all;
    return sm_count - placement.first * sms_per_unit;
  }
};

/// The SMs as text: "0-47", "40-79, 2 blocks each"; "none" for the empty placement.
inline std::string sms_text(const Placement& placement, const Machine& machine) {
  if (placement.empty()) return "none";
  const std::uint32_t first = placement.first * machine.sms_per_unit;
  std::string text =
      std::to_string(first) + "-" + std::to_string(first + machine.sms(placement) - 1);
  if (placement.blocks_per_sm != 0)
    text += ", " + std::to_string(placement.blocks_per_sm) + " blocks each";
  if (placement.ahead) text += ", ahead";
  return text;
}

}  // namespace slate::scheduler
