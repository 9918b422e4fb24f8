#include "injector/fence/element_limits.h"

#include <algorithm>

#include "injector/analysis/dominators.h"

namespace slate::injector {

IndexCheck ElementLimits::add(const IndexedAddress& indexed, std::uint32_t mask) {
  const auto limit = std::ranges::find_if(limits_, [&](const ElementLimit& each) {
    return each.least_of.empty() &&
           each.pointer->parts[0].index == indexed.pointer->parts[0].index &&
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
    limits_.push_back({.least_of = {},
                       .pointer = indexed.pointer,
                       .offset = indexed.offset,
                       .shift = indexed.shift,
                       .is_signed = indexed.is_signed,
                       .mask = mask});
    blocks_.push_back(ControlFlow::kNone);
  }
  return check;
}

std::uint32_t ElementLimits::least(std::vector<std::uint32_t> limits) {
  std::ranges::sort(limits);
  const auto known = std::ranges::find(limits_, limits, &ElementLimit::least_of);
  const auto number = static_cast<std::uint32_t>(known - limits_.begin());
  if (known != limits_.end()) return number;
  limits_.push_back({.least_of = std::move(limits)});
  blocks_.push_back(ControlFlow::kNone);
  return number;
}

void ElementLimits::use(std::uint32_t limit, std::uint32_t at) {
  use_in(limit, flow_.block_of(at));
}

void ElementLimits::use_in(std::uint32_t limit, std::uint32_t here) {
  std::uint32_t& block = blocks_[limit];
  block = block == ControlFlow::kNone ? here : addresses_.common_dominator(block, here);
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

std::uint32_t ElementLimits::block_for(const ptx::Function& function, const Loops& loops,
                                       std::uint32_t limit) const {
  const std::uint32_t block = blocks_[limit] == ControlFlow::kNone ? 0 : blocks_[limit];
  const std::uint32_t outside = loops.outside(block);
  return outside == block ? block : beside_loads(function, loops, outside);
}

/// The least of several stands behind these, which have lower numbers.
void ElementLimits::place(const ptx::Function& function, const Loops& loops) {
  for (auto i = static_cast<std::uint32_t>(limits_.size()); i-- > 0;) {
    const std::uint32_t block = block_for(function, loops, i);
    limits_[i].at = flow_.blocks()[block].first;
    for (const std::uint32_t each : limits_[i].least_of) use_in(each, block);
  }
}

}  // namespace slate::injector
