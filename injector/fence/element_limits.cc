#include "injector/fence/element_limits.h"

#include <algorithm>

#include "injector/analysis/dominators.h"

namespace slate::injector {

IndexCheck ElementLimits::add(const IndexedAddress& indexed, std::uint32_t mask,
                              const std::function<bool()>& claims) {
  const auto limit = std::ranges::find_if(limits_, [&](const ElementLimit& each) {
    return each.pointer->parts[0].index == indexed.pointer->parts[0].index &&
           each.pointer->integer == indexed.pointer->integer && each.offset == indexed.offset &&
           each.shift == indexed.shift && each.is_signed == indexed.is_signed;
  });
  const auto copy = std::ranges::find(copies_, indexed.reader, &IndexCopy::reader);
  const IndexCheck check{.limit = static_cast<std::uint32_t>(limit - limits_.begin()),
                         .copy = static_cast<std::uint32_t>(copy - copies_.begin())};
  if (copy == copies_.end()) {
    copies_.push_back(
        {.index = indexed.index, .is_wide = indexed.is_wide, .reader = indexed.reader});
  }
  if (limit != limits_.end()) {
    limit->mask |= mask;
  } else {
    limits_.push_back({.pointer = indexed.pointer,
                       .offset = indexed.offset,
                       .shift = indexed.shift,
                       .is_signed = indexed.is_signed,
                       .mask = mask,
                       .is_claimed = claims()});
    blocks_.push_back(ControlFlow::kNone);
  }
  return check;
}

void ElementLimits::use(std::uint32_t limit, std::uint32_t at) {
  const std::uint32_t here = flow_.block_of(at);
  std::uint32_t& block = blocks_[limit];
  block = block == ControlFlow::kNone ? here : common_dominator(block, here);
}

std::uint32_t ElementLimits::common_dominator(std::uint32_t a, std::uint32_t b) const {
  while (a != b && a != kNoDominator && b != kNoDominator) {
    std::uint32_t& lower = addresses_.is_above(a, b) ? b : a;
    lower = addresses_.dominators()[lower];
  }
  return a == b ? a : 0;  // of blocks that nothing comes to
}

/// The block in front of this one if it loads from global memory, else this one.
std::uint32_t ElementLimits::beside_loads(const ptx::Function& function, const Loops& loops,
                                          std::uint32_t block) const {
  const std::uint32_t above = addresses_.dominators()[block];
  if (above == kNoDominator || !loops.around(above).empty()) return block;
  const ControlFlow::Block& before = flow_.blocks()[above];
  if (std::ranges::find(before.successors, block) == before.successors.end()) return block;
  const auto begin = function.instructions.begin();
  const bool loads = std::any_of(begin + before.first, begin + before.end, [](const auto& each) {
    return each.opcode == "ld" && each.has("global");
  });
  return loads ? above : block;
}

void ElementLimits::place(const ptx::Function& function, const Loops& loops) {
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    std::uint32_t block = blocks_[i] == ControlFlow::kNone ? 0 : blocks_[i];
    if (!loops.around(block).empty()) {
      while (!loops.around(block).empty()) block = loops.before(loops.around(block).back());
      block = beside_loads(function, loops, block);
    }
    limits_[i].at = flow_.blocks()[block].first;
  }
}

}  // namespace slate::injector
