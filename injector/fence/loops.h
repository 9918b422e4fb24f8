// Loops: the natural loops of one function, and where each begins: what does not change in a loop
// can be looked at in front of it. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "injector/analysis/control_flow.h"

namespace slate::injector {

class Loops {
 public:
  /// `dominators`: the immediate one of each block. Of functions with very many blocks in loops no
  /// loop is found.
  Loops(const ControlFlow& flow, const std::vector<std::uint32_t>& dominators);

  std::uint32_t count() const { return static_cast<std::uint32_t>(headers_.size()); }
  /// The loops that the block is in, the smallest first.
  const std::vector<std::uint32_t>& around(std::uint32_t block) const { return around_[block]; }
  bool contains(std::uint32_t loop, std::uint32_t block) const { return bodies_[loop][block]; }
  /// The block that the loop begins with.
  std::uint32_t header(std::uint32_t loop) const { return headers_[loop]; }
  /// The last block outside of the loop that every way into it passes.
  std::uint32_t before(std::uint32_t loop) const { return befores_[loop]; }
  /// The last block that is in no loop and that every way to the block passes.
  std::uint32_t outside(std::uint32_t block) const {
    while (!around_[block].empty()) block = befores_[around_[block].back()];
    return block;
  }
  /// The blocks outside of the loop from which its first turn begins.
  const std::vector<std::uint32_t>& entries(std::uint32_t loop) const { return entries_[loop]; }
  /// The blocks from which a further turn of the loop begins.
  const std::vector<std::uint32_t>& tails(std::uint32_t loop) const { return tails_[loop]; }

 private:
  /// Most loops times blocks that are kept.
  static constexpr std::uint64_t kMost = 1 << 22;

  void add(const ControlFlow& flow, std::uint32_t header,
           const std::vector<std::vector<std::uint32_t>>& predecessors,
           const std::vector<std::uint32_t>& tails);

  std::vector<std::uint32_t> headers_;
  std::vector<std::uint32_t> befores_;
  std::vector<std::vector<std::uint32_t>> entries_, tails_;
  std::vector<std::vector<bool>> bodies_;
  std::vector<std::vector<std::uint32_t>> around_;  // by block
};

}  // namespace slate::injector
