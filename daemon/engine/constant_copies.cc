#include "daemon/engine/constant_copies.h"

#include <algorithm>
#include <cstring>

namespace slate::daemon {
namespace {

// A kernel may be given a pointer to the end of what it writes, or in front of it.
constexpr std::uint64_t kAround = 64 << 10;

bool overlap(device::AddressRange one, std::uint64_t base, std::uint64_t end) {
  return base < one.base + one.bytes && one.base < end;
}

}  // namespace

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
  for (const OwnConstantSet::Pair& pair : set->pairs) {
    first_ = std::min(first_, pair.program.base);
    end_ = std::max(end_, pair.program.base + pair.program.bytes);
  }
}

void ConstantCopies::note_write(device::AddressRange range) {
  if (sets_.empty() || !overlap(range, first_, end_)) return;
  outdate([range](device::AddressRange constant) {
    return overlap(constant, range.base, range.base + range.bytes);
  });
}

void ConstantCopies::note_launch(bool may_write, std::span<const std::byte> parameters) {
  if (sets_.empty()) return;
  if (may_write) return outdate([](device::AddressRange) { return true; });
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, &parameters[at], sizeof(word));
    if (word < kAround || word - kAround >= end_ || word + kAround <= first_) continue;
    outdate([word](device::AddressRange constant) {
      return overlap(constant, word - kAround, word + kAround);
    });
  }
}

}  // namespace slate::daemon
