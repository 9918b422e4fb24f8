// What the buffers of memory/tenant.cu hold, by arithmetic on the host alone. All of it is modulo
// 2^32: a buffer's word i is slope * i + offset, and a rewriting step keeps that form. One window
// of words, at the same place in each buffer, is exempt, as copies change it: it is kept in full.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slate::kernels {

/// The words of a buffer outside of its window.
struct Line {
  std::uint32_t slope = 0, offset = 0;
  constexpr std::uint32_t at(std::uint64_t index) const {
    return slope * static_cast<std::uint32_t>(index) + offset;
  }
};

/// A word becomes keep * word + take * (the word of another buffer) + add. `keep` is odd and `take`
/// even. So the step is invertible, and a slope that is odd stays odd: all words differ.
struct Step {
  std::uint32_t keep = 1, take = 0, add = 0;
};

/// A number that looks random, the same on every machine.
constexpr std::uint32_t scrambled(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b * 0x94d049bb133111ebu;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 16);
}

class Contents {
 public:
  /// Requires: words >= 4.
  Contents(std::uint64_t seed, unsigned buffers, std::uint64_t words) : seed_(seed) {
    size_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(8192, words / 4));
    // Across the bound of two segments of device memory, where the buffer has one.
    const std::uint64_t segment = (2u << 20) / sizeof(std::uint32_t);
    const std::uint64_t bound = words / 2 / segment * segment;
    first_ = bound > 0 ? bound - size_ / 2 : words / 2;
    for (unsigned buffer = 0; buffer < buffers; ++buffer) {
      lines_.push_back({scrambled(seed, buffer, 1) | 1, scrambled(seed, buffer, 2)});
      windows_.emplace_back(size_);
      for (std::uint32_t i = 0; i < size_; ++i) windows_[buffer][i] = lines_[buffer].at(first_ + i);
    }
  }

  std::uint64_t window_first() const { return first_; }
  std::uint32_t window_size() const { return size_; }
  Line line(unsigned buffer) const { return lines_[buffer]; }
  std::vector<std::uint32_t>& window(unsigned buffer) { return windows_[buffer]; }

  /// The step of a round that rewrites a buffer from `source`, or in place.
  Step step(unsigned round, unsigned buffer, unsigned source) const {
    const std::uint32_t take =
        source == buffer ? 0 : scrambled(seed_, round, 3 * buffer + 11) & ~1u;
    return {scrambled(seed_, round, 3 * buffer + 10) | 1, take,
            scrambled(seed_, round, 3 * buffer + 12)};
  }

  void rewrite(unsigned buffer, unsigned source, Step step) {
    Line& line = lines_[buffer];
    const Line other = lines_[source];
    line = {step.keep * line.slope + step.take * other.slope,
            step.keep * line.offset + step.take * other.offset + step.add};
    for (std::uint32_t i = 0; i < size_; ++i) {
      windows_[buffer][i] =
          step.keep * windows_[buffer][i] + step.take * windows_[source][i] + step.add;
    }
  }

  std::uint32_t at(unsigned buffer, std::uint64_t index) const {
    const bool inside = index >= first_ && index - first_ < size_;
    return inside ? windows_[buffer][index - first_] : lines_[buffer].at(index);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t first_ = 0;  // word of each buffer where its window begins
  std::uint32_t size_ = 0;   // words of a window
  std::vector<Line> lines_;
  std::vector<std::vector<std::uint32_t>> windows_;
};

}  // namespace slate::kernels
