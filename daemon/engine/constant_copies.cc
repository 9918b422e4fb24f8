#include "daemon/engine/constant_copies.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "daemon/dispatch/variable_home.h"

namespace slate::daemon {
template <typename IsWritten>
void ConstantCopies::outdate(const IsWritten& is_written) {
  std::erase_if(sets_, [&](const std::weak_ptr<OwnConstantSet>& each) {
    const auto set = each.lock();
    if (set == nullptr) return true;
    if (set->filled_on != nullptr && std::ranges::any_of(set->pairs, [&](const auto& pair) {
          return is_written(pair.program);
        })) {
      set->filled_on.reset();
    }
    return false;
  });
}

void ConstantCopies::watch(const std::shared_ptr<OwnConstantSet>& set) {
  sets_.push_back(set);
  may_be_in_memory_ |= set->may_be_unseen;
  for (const OwnConstantSet::Pair& pair : set->pairs) add(pair.program);
}

/// Ranges that overlap become one: a bank has the constants of bounded copies in it.
void ConstantCopies::add(device::AddressRange range) {
  std::erase_if(constants_, [&range](const device::AddressRange& each) {
    if (!each.overlaps(range)) return false;
    const device::Address first = std::min(each.base, range.base);
    range = {first, std::max(each.base + each.bytes, range.base + range.bytes) - first};
    return true;
  });
  constants_.insert(
      std::ranges::lower_bound(constants_, range.base, {}, &device::AddressRange::base), range);
}

/// The last one that begins in front of the range's end is the last one that may meet it.
bool ConstantCopies::meets_a_constant(device::AddressRange range) const {
  const auto behind = std::ranges::lower_bound(constants_, range.base + range.bytes, {},
                                               &device::AddressRange::base);
  return behind != constants_.begin() && std::prev(behind)->overlaps(range);
}

void ConstantCopies::note_write(device::AddressRange range) {
  if (!meets_a_constant(range)) return;
  outdate([range](device::AddressRange constant) { return range.overlaps(constant); });
}

void ConstantCopies::outdate_all() {
  outdate([](device::AddressRange) { return true; });
}

/// A kernel may write a pointer down that it is given.
void ConstantCopies::note_parameters(std::span<const std::byte> parameters) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, &parameters[at], sizeof(word));
    if (word < kAroundConstants) continue;
    const device::AddressRange around{word - kAroundConstants, 2 * kAroundConstants};
    if (!meets_a_constant(around)) continue;
    may_be_in_memory_ = true;
    outdate([around](device::AddressRange constant) { return around.overlaps(constant); });
  }
}

/// Of a long copy only the beginning: it is data, not a list of pointers.
void ConstantCopies::note_bytes(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostBytes = 64 << 10;
  if (may_be_in_memory_ || constants_.empty()) return;
  const std::uint64_t first = constants_.front().base - kAroundConstants;
  const std::uint64_t length =
      constants_.back().base + constants_.back().bytes + kAroundConstants - first;
  const std::size_t end = std::min(bytes.size(), kMostBytes);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= end; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof(word));
    if (word - first >= length) continue;
    if (!meets_a_constant({word - kAroundConstants, 2 * kAroundConstants})) continue;
    may_be_in_memory_ = true;
    return;
  }
}

}  // namespace slate::daemon
