#include "device/sim/heap.h"

#include <iterator>

namespace slate::sim {
namespace {

constexpr std::uint64_t kAlign = 16;

}  // namespace

DeviceHeap::DeviceHeap(device::AddressRange range) {
  const std::uint64_t skipped = (kAlign - range.base % kAlign) % kAlign;
  if (range.bytes > skipped)
    free_[range.base + skipped] = (range.bytes - skipped) / kAlign * kAlign;
}

device::Address DeviceHeap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > UINT64_MAX - kAlign) return 0;
  const std::uint64_t size = (bytes + kAlign - 1) / kAlign * kAlign;
  const std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [address, room] = *it;
    if (room < size) continue;
    free_.erase(it);
    if (room > size) free_[address + size] = room - size;
    used_[address] = size;
    return address;
  }
  return 0;
}

bool DeviceHeap::release(device::Address address) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(address);
  if (found == used_.end()) return false;
  const std::uint64_t size = found->second;
  used_.erase(found);
  auto it = free_.emplace(address, size).first;
  const auto next = std::next(it);
  if (next != free_.end() && it->first + it->second == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return true;
  const auto before = std::prev(it);
  if (before->first + before->second == it->first) {
    before->second += it->second;
    free_.erase(it);
  }
  return true;
}

}  // namespace slate::sim
