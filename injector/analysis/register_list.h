// RegisterList: a few of all registers of a function, each with its place in the list. Thread: one
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slate::injector {

class RegisterList {
 public:
  /// `registers`: how many there are, the carry flag included.
  explicit RegisterList(std::size_t registers) : place_(registers, kNowhere) {}

  void clear() {
    for (const std::uint32_t r : all_) place_[r] = kNowhere;
    all_.clear();
  }
  /// Returns false if it was there.
  bool add(std::uint32_t r) {
    if (has(r)) return false;
    place_[r] = static_cast<std::uint32_t>(all_.size());
    all_.push_back(r);
    return true;
  }
  bool has(std::uint32_t r) const { return place_[r] != kNowhere; }
  /// Requires: has(r).
  std::uint32_t at(std::uint32_t r) const { return place_[r]; }
  const std::vector<std::uint32_t>& all() const { return all_; }

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  std::vector<std::uint32_t> place_;  // by register
  std::vector<std::uint32_t> all_;
};

}  // namespace slate::injector
