#include "injector/analysis/flow_value.h"

#include <algorithm>

namespace slate::injector {

bool join(OriginTable& origins, FlowValue& value, const FlowValue& more) {
  const OriginTable::Id origin = origins.joined(value.origin, more.origin);
  const bool by_chance = value.by_chance || more.by_chance;
  const bool is_news = origin != value.origin || by_chance != value.by_chance;
  value = {origin, by_chance};
  return is_news;
}

FlowValue unknown_value(std::uint32_t bytes) {
  if (bytes < 4) return {OriginTable::kNumber};
  return {bytes == 4 ? OriginTable::kUnknownHalf : OriginTable::kUnknown};
}

bool MemoryCell::store(OriginTable& origins, const FlowValue& value, std::uint32_t bytes) {
  FlowValue stored = value;
  if (bytes < 4 || (bytes < 8 && stored.origin == OriginTable::kNull)) {
    stored.origin = OriginTable::kNumber;
  }
  return join(origins, bytes >= 8 ? wide_ : narrow_, stored);
}

/// What was stored in one width and is loaded in another is not followed.
FlowValue MemoryCell::load(OriginTable& origins, std::uint32_t bytes) const {
  const FlowValue& same = bytes >= 8 ? wide_ : narrow_;
  const FlowValue& other = bytes >= 8 ? narrow_ : wide_;
  if (bytes < 4) return {OriginTable::kNumber, wide_.by_chance || narrow_.by_chance};
  FlowValue value = same;
  value.by_chance |= other.by_chance;
  if (value.origin == OriginTable::kNone) value.origin = OriginTable::kNumber;
  if (!origins.is_number(other.origin)) join(origins, value, unknown_value(bytes));
  return value;
}

bool ParameterSlots::store(OriginTable& origins, Owner owner, std::int64_t offset,
                           std::uint32_t bytes, const FlowValue& value) {
  Slot& slot = contents_[owner].slots[offset];
  FlowValue stored = value;
  if (slot.bytes != 0 && slot.bytes != bytes && !origins.is_number(value.origin)) {
    stored.origin = OriginTable::kUnknown;
  }
  const bool is_wider = bytes > slot.bytes;
  slot.bytes = std::max(slot.bytes, bytes);
  return join(origins, slot.value, stored) || is_wider;
}

bool ParameterSlots::lose(Owner owner) {
  bool& is_lost = contents_[owner].is_lost;
  const bool is_news = !is_lost;
  is_lost = true;
  return is_news;
}

FlowValue ParameterSlots::load(OriginTable& origins, Owner owner, std::int64_t offset,
                               std::uint32_t bytes) const {
  const auto found = contents_.find(owner);
  if (found == contents_.end()) return {};
  const Contents& contents = found->second;
  if (contents.is_lost) return {unknown_value(bytes).origin, true};
  const auto exact = contents.slots.find(offset);
  if (exact != contents.slots.end() && exact->second.bytes == bytes) return exact->second.value;
  return overlapping(origins, contents, offset, bytes);
}

FlowValue ParameterSlots::overlapping(OriginTable& origins, const Contents& contents,
                                      std::int64_t offset, std::uint32_t bytes) const {
  FlowValue value;
  bool is_number = true;
  bool is_there = false;
  constexpr std::int64_t kWidest = 16;
  for (auto i = contents.slots.lower_bound(offset - kWidest);
       i != contents.slots.end() && i->first < offset + bytes; ++i) {
    const auto& [at, slot] = *i;
    if (at + slot.bytes <= offset) continue;
    is_there = true;
    value.by_chance |= slot.value.by_chance;
    is_number &= origins.is_number(slot.value.origin);
  }
  if (!is_there) return value;
  value.origin = OriginTable::kNumber;
  if (is_number) return value;
  const auto half = [&](std::int64_t at, std::uint32_t wanted) -> const FlowValue* {
    const auto found = contents.slots.find(at);
    return found != contents.slots.end() && found->second.bytes == wanted ? &found->second.value
                                                                          : nullptr;
  };
  if (bytes == 4) {
    if (const FlowValue* whole = half(offset, 8))
      return {origins.low(whole->origin), value.by_chance};
    if (const FlowValue* whole = half(offset - 4, 8)) {
      return {origins.high(whole->origin), value.by_chance};
    }
  }
  const FlowValue* low = half(offset, 4);
  const FlowValue* high = half(offset + 4, 4);
  if (bytes == 8 && low != nullptr && high != nullptr) {
    return {origins.packed(low->origin, high->origin), value.by_chance};
  }
  value.origin = unknown_value(bytes).origin;
  return value;
}

bool ParameterSlots::copy(OriginTable& origins, Owner owner, const ParameterSlots& source,
                          Owner from) {
  const auto found = source.contents_.find(from);
  if (found == source.contents_.end()) return false;
  bool is_news = false;
  if (found->second.is_lost) is_news |= lose(owner);
  for (const auto& [offset, slot] : found->second.slots) {
    is_news |= store(origins, owner, offset, slot.bytes, slot.value);
  }
  return is_news;
}

}  // namespace slate::injector
