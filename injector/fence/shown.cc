#include "injector/fence/shown.h"

#include <algorithm>

namespace slate::injector {
namespace {

/// Whether what holds for accesses of one space holds for those of another by the same address.
bool serves(MemorySpace shown, MemorySpace wanted) {
  return shown == wanted || (shown == MemorySpace::kGlobal && wanted == MemorySpace::kGeneric);
}

}  // namespace

void Shown::rewind(std::size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) facts_[log_.back()].pop_back();
}

void Shown::add(std::uint32_t base, MemorySpace space, const CheckedAccess& access) {
  facts_[base].push_back({space, access, generations_[base]});
  log_.push_back(base);
}

bool Shown::includes(const Fact& fact, const CheckedAccess& access) const {
  const CheckedAccess& shown = fact.access;
  const std::int64_t end = shown.offset + std::int64_t{shown.bytes};
  const bool is_within =
      shown.offset <= access.offset && access.offset + std::int64_t{access.bytes} <= end;
  const std::int64_t apart = access.offset - shown.offset;
  const bool is_aligned = shown.align >= access.align && apart % std::int64_t{access.align} == 0;
  const bool may_write = shown.writes || fact.space != MemorySpace::kGeneric || !has_parameters_;
  return is_within && is_aligned && (may_write || !access.writes);
}

bool Shown::covers(std::uint32_t base, MemorySpace space, const CheckedAccess& access) const {
  const auto found = facts_.find(base);
  if (found == facts_.end()) return false;
  const auto generation = generations_.find(base);
  const std::uint32_t present = generation == generations_.end() ? 0 : generation->second;
  const auto& facts = found->second;
  const std::size_t first = facts.size() > kMost ? facts.size() - kMost : 0;
  return std::any_of(
      facts.begin() + static_cast<std::ptrdiff_t>(first), facts.end(), [&](const Fact& fact) {
        return fact.generation == present && serves(fact.space, space) && includes(fact, access);
      });
}

}  // namespace slate::injector
