#include "daemon/engine/constant_copies.h"

#include <algorithm>
#include <cstring>

namespace slate::daemon {
namespace {

// A kernel may be given a pointer to the end of what it writes, or in front of it.
constexpr std::uint64_t kAround = 64 << 10;

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
    const auto& [base, bytes] = pair.program;
    if (all_.bytes == 0) all_ = pair.program;
    const device::Address first = std::min(all_.base, base);
    all_ = {first, std::max(all_.base + all_.bytes, base + bytes) - first};
  }
}

void ConstantCopies::note_write(device::AddressRange range) {
  if (sets_.empty() || !range.overlaps(all_)) return;
  outdate([range](device::AddressRange constant) { return range.overlaps(constant); });
}

void ConstantCopies::note_launch(bool may_write, std::span<const std::byte> parameters,
                                 const IsApart& is_apart) {
  if (sets_.empty()) return;
  if (may_write) return outdate([](device::AddressRange) { return true; });
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, &parameters[at], sizeof(word));
    if (word < kAround) continue;
    const device::AddressRange around{word - kAround, 2 * kAround};
    if (!around.overlaps(all_) || (is_apart && is_apart(word))) continue;
    outdate([around](device::AddressRange constant) { return around.overlaps(constant); });
  }
}

}  // namespace slate::daemon
