// ElementLimits: checks that compare an index from a pointer among the parameters (indices.h) with
// the number of elements that the pointer has. It collects the limits and the copies of indices of
// one function, and says where each limit is computed. Thread: one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/fence/addresses.h"
#include "injector/fence/indices.h"
#include "injector/fence/loops.h"

namespace slate::injector {

/// A limit as PassedLimit, which the launch passes or the kernel computes.
struct ElementLimit {
  std::vector<std::uint32_t> least_of;    // numbers of these limits; empty: it is a pointer's
  const ptx::Operand* pointer = nullptr;  // as in IndexedAddress
  std::int64_t offset = 0;                // bytes from the pointer to the first element
  std::uint32_t shift = 0;                // binary logarithm of an element's bytes
  bool is_signed = false;                 // whether indices are signed
  std::uint32_t mask = 0;                 // last bits of the pointer that must be 0
  std::uint32_t at = 0;                   // instruction in front of which it is computed
};

/// A copy of an index, made where it is read: its register may change later.
struct IndexCopy {
  const ptx::Operand* index = nullptr;
  bool is_wide = false;      // whether the index is the lower half of its register
  std::uint32_t reader = 0;  // instruction behind which the copy is made
};

/// The fast path of accesses by an index: numbers of a limit and of a copy.
struct IndexCheck {
  std::uint32_t limit = 0;
  std::uint32_t copy = 0;
};

class ElementLimits {
 public:
  /// Requires: the arguments outlive it.
  ElementLimits(const ControlFlow& flow, const Addresses& addresses)
      : flow_(flow), addresses_(addresses) {}

  /// `mask`: last bits of the pointer that must be 0.
  IndexCheck add(const IndexedAddress& indexed, std::uint32_t mask);
  /// The number of the least of several limits.
  std::uint32_t least(std::vector<std::uint32_t> limits);
  /// A check stands in front of the instruction.
  void use(std::uint32_t limit, std::uint32_t at);
  /// Puts each limit into the last block outside of loops that all its checks come behind. In front
  /// of a loop it goes to the block that decides whether the loop is entered, if that waits for
  /// loads.
  void place(const ptx::Function& function, const Loops& loops);

  std::vector<ElementLimit> take_limits() { return std::move(limits_); }
  std::vector<IndexCopy> take_copies() { return std::move(copies_); }

 private:
  std::uint32_t block_for(const ptx::Function& function, const Loops& loops,
                          std::uint32_t limit) const;
  void use_in(std::uint32_t limit, std::uint32_t block);
  std::uint32_t beside_loads(const ptx::Function& function, const Loops& loops,
                             std::uint32_t block) const;

  const ControlFlow& flow_;
  const Addresses& addresses_;
  std::vector<ElementLimit> limits_;
  std::vector<std::uint32_t> blocks_;  // by limit: passed on every way to its checks
  std::vector<IndexCopy> copies_;      // each of another reader
};

}  // namespace slate::injector
