#include "client/session/host_pool.h"

#include <algorithm>
#include <cstring>

namespace slate::client {

std::array<HostPool::Size, HostPool::kSizes> HostPool::all_sizes() {
  std::array<Size, kSizes> sizes;
  for (std::size_t i = 0; i < kSizes; ++i) {
    sizes[i].piece = kLeast << i;
    sizes[i].next_slab = std::max(kFirstSlab, sizes[i].piece);
  }
  return sizes;
}

/// A piece of this slab; 0 when none can be had now.
std::uint64_t HostPool::take(Size& size, Slab& slab) {
  std::uint64_t address = 0;
  if (!slab.freed.empty() && source_.done(slab.freed.front().position)) {
    address = slab.freed.front().address;
    slab.freed.pop_front();
    std::memset(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 0, size.piece);
  } else if (slab.cut < slab.bytes) {
    address = slab.address + slab.cut;
    slab.cut += size.piece;
  }
  if (address != 0) ++slab.in_use;
  return address;
}

Result<void> HostPool::add_slab(Size& size) {
  const auto address = source_.get(size.next_slab);
  if (!address) return std::unexpected(address.error());
  size.slabs.push_front({*address, size.next_slab, 0, 0, {}});
  size.next_slab = std::min(2 * size.next_slab, kLargestSlab);
  return {};
}

Result<std::uint64_t> HostPool::allocate(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  Size& size = sizes_[std::bit_width((std::max(bytes, kLeast) - 1) / kLeast)];
  for (auto slab = size.slabs.begin(); slab != size.slabs.end(); ++slab) {
    const std::uint64_t address = take(size, *slab);
    if (address == 0) continue;
    size.slabs.splice(size.slabs.begin(), size.slabs, slab);
    pieces_.emplace(address, Owner{&size, slab});
    return address;
  }
  if (auto ok = add_slab(size); !ok) return std::unexpected(ok.error());
  const std::uint64_t address = take(size, size.slabs.front());
  pieces_.emplace(address, Owner{&size, size.slabs.begin()});
  return address;
}

bool HostPool::free(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto found = pieces_.find(address);
  if (found == pieces_.end()) return false;
  const auto [size, slab] = found->second;
  pieces_.erase(found);
  slab->freed.push_back({address, source_.newest()});
  if (--slab->in_use > 0) return true;
  // One that is empty stays, so that a program which allocates and frees in turn maps nothing.
  const auto empty = [](const Slab& each) { return each.in_use == 0; };
  if (std::ranges::count_if(size->slabs, empty) == 1) return true;
  source_.give_back(slab->address);
  size->slabs.erase(slab);
  return true;
}

void HostPool::for_each_empty(
    const std::function<void(std::uint64_t, std::uint64_t)>& visit) const {
  const MutexLock lock(mutex_);
  for (const Size& size : sizes_) {
    for (const Slab& slab : size.slabs) {
      if (slab.in_use == 0) visit(slab.address, slab.bytes);
    }
  }
}

}  // namespace slate::client
