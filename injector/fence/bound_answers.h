// BoundAnswers: whether launches of one kernel keep to its AccessBounds, as hold() says, for a host
// that asks in front of each. It knows the answers for earlier launches, and ranges of numbers for
// which all launches do. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "injector/fence/access_bounds.h"
#include "injector/fence/bound_check.h"

namespace slate::injector {

class BoundAnswers {
 public:
  explicit BoundAnswers(AccessBounds bounds);

  bool hold(const LaunchValues& launch);
  /// How often an answer was computed, as none was known.
  std::uint64_t computed() const { return computed_; }

 private:
  static constexpr std::size_t kMostBytes = 64 << 10;  // of the keys of answers
  static constexpr unsigned kMostPause = 8;            // a power of two: launches
  static constexpr unsigned kNoReach = 63, kMostShift = 32;

  bool find(const LaunchValues& launch);
  bool widen(const LaunchValues& launch);
  bool reach_out(const LaunchValues& launch, unsigned shift);
  bool compute(const LaunchValues& launch);
  std::span<const std::uint64_t> numbers() const {
    return std::span(launch_).first(check_.inputs());
  }

  BoundCheck check_;
  // The inputs of the present launch and of the last one, with the main extent.
  std::vector<std::uint64_t> launch_, last_;
  bool last_answer_ = false;
  std::unordered_map<std::string, bool> answers_;  // by the bytes of launch_
  // Ranges of launch_ for which the bounds hold, and others that are tried. Empty: none.
  std::vector<InputRange> known_, tried_;
  unsigned shift_ = 0;     // by how many bits the ranges' growth is less than their length
  unsigned failures_ = 0;  // tries in a row in which the ranges could not grow
  unsigned pause_ = 0;     // launches until the next try
  std::uint64_t computed_ = 0;
};

}  // namespace slate::injector
