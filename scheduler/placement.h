// Placements: which SMs a launch may use, and how many of its blocks each of them. The units are
// the device's smallest hardware partitions (8 SMs on an H200, the last one 12; 1 on sim by
// default).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace slate::scheduler {

enum class Form : std::uint8_t { kNative, kWorker, kSlice };

constexpr std::string_view form_name(Form form) {
  constexpr std::string_view kNames[] = {"native", "worker", "slice"};
  return kNames[static_cast<std::size_t>(form)];
}

/// Units [first, first + count), on each SM at most `blocks_per_sm` blocks (worker form only; 0: as
/// many as fit); `ahead`: before the blocks of others that wait for the same SMs.
struct Placement {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t blocks_per_sm = 0;
  bool ahead = false;

  bool empty() const { return count == 0; }
  std::uint32_t end() const { return first + count; }
  bool overlaps(const Placement& other) const { return first < other.end() && other.first < end(); }
  auto operator<=>(const Placement&) const = default;
};

/// What there is to be placed on.
struct Machine {
  std::uint32_t sm_count = 1;
  std::uint32_t units = 1;         // 1: the device cannot be partitioned
  std::uint32_t sms_per_unit = 1;  // the last unit may have more or fewer
  double peak_gflops = 0;          // single precision, 0: unknown
  double peak_gbytes = 0;          // memory, per second, 0: unknown

  Placement whole() const { return {.first = 0, .count = units}; }
  bool has_all_units(const Placement& placement) const {
    return placement.first == 0 && placement.count >= units;
  }
  /// All of it, and as many blocks as fit.
  bool is_whole(const Placement& placement) const {
    return has_all_units(placement) && placement.blocks_per_sm == 0;
  }
  std::uint32_t sms(const Placement& placement) const {
    const std::uint32_t all = placement.count * sms_per_unit;
    if (placement.end() < units || placement.count == 0) return all;
    return sm_count - placement.first * sms_per_unit;
  }
};

/// "0-47", "40-79, 2 blocks each"; "none" for the empty placement.
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
