// Shown: what the checks on the way to an instruction have shown of accesses by each register. The
// way is the one down the tree of dominators, so that every path has passed these checks. Thread:
// one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "injector/fence/accesses.h"

namespace slate::injector {

/// One access that is checked, `offset` bytes from its base.
struct CheckedAccess {
  std::int64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;
  bool writes = false;
  /// Whether nothing is known of the base's last bits, so that the fast path has to look at them.
  bool tests_alignment = false;
  /// Whether it is aligned if the parameter that its base was computed from is.
  bool follows_parameter = false;
  std::uint32_t line = 0;

  bool operator==(const CheckedAccess&) const = default;
};

class Shown {
 public:
  /// `has_parameters`: whether generic addresses may lead to parameters. These may be read only;
  /// all else a kernel may write where it may read.
  explicit Shown(bool has_parameters) : has_parameters_(has_parameters) {}

  /// A place on the way, for rewind().
  std::size_t mark() const { return log_.size(); }
  /// Forgets what was added since.
  void rewind(std::size_t mark);
  void add(std::uint32_t base, MemorySpace space, const CheckedAccess& access);
  bool covers(std::uint32_t base, MemorySpace space, const CheckedAccess& access) const;
  /// The register gets another value.
  void forget(std::uint32_t base) { ++generations_[base]; }

 private:
  static constexpr std::size_t kMost = 64;  // facts of one register that are looked at

  struct Fact {
    MemorySpace space;
    CheckedAccess access;
    std::uint32_t generation;  // value of generations_ at that time
  };

  bool includes(const Fact& fact, const CheckedAccess& access) const;

  const bool has_parameters_;
  std::unordered_map<std::uint32_t, std::vector<Fact>> facts_;    // by register
  std::unordered_map<std::uint32_t, std::uint32_t> generations_;  // by register
  std::vector<std::uint32_t> log_;  // registers in the order of their facts
};

}  // namespace slate::injector
