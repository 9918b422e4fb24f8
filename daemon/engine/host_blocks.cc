#include "daemon/engine/host_blocks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

std::uint64_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return 2ull << 30;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

}  // namespace

HostBlocks::~HostBlocks() {
  SLATE_CHECK(blocks_.empty() && retired_.empty());
}

std::uint64_t HostBlocks::default_limit() {
  return machine_memory() / 2;
}

std::uint64_t HostBlocks::default_budget() {
  return machine_memory() / 4 * 3;
}

Result<device::Address> HostBlocks::allocate(std::uint64_t id, std::uint64_t bytes,
                                             std::uint64_t least) {
  if (id == 0 || blocks_.contains(id) || bytes == 0 || bytes % ipc::kMemoryGrain != 0) {
    return fail(ErrorCode::kProtocol, fmt::format("host memory {} of {} bytes", id, bytes));
  }
  // Those that work may still use are mapped, too, and a process has only so many mappings.
  const std::size_t retired = [this] {
    const MutexLock lock(mutex_);
    return retired_.size();
  }();
  if (blocks_.size() + retired >= kMostBlocks || unmapped_ >= kMostUnmapped)
    return fail(ErrorCode::kLimit, "too many blocks of shared host memory");
  if (bytes > limit_ - std::min(limit_, bytes_.load())) {
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("{} bytes of pinned host memory and {} more are above the limit of {}",
                            bytes_.load(), bytes, limit_));
  }
  if (account_ != nullptr) {
    if (const auto taken = account_->take(bytes); !taken) return std::unexpected(taken.error());
  }
  const auto address = make(id, bytes, least);
  if (!address) {
    if (account_ != nullptr) account_->give(bytes);
    return address;
  }
  blocks_.emplace(id, Block{{*address, bytes}, true});
  sizes_.emplace(*address, bytes);
  ++unmapped_;
  bytes_.fetch_add(bytes);
  note_ranges();
  return *address;
}

/// The memory, mapped by the device and on its way to the client.
Result<device::Address> HostBlocks::make(std::uint64_t id, std::uint64_t bytes,
                                         std::uint64_t least) {
  const auto memory = ipc::make_shared_memory("slate-pinned", bytes);
  if (!memory) return std::unexpected(memory.error());
  const auto address = device_.map_host(memory->get(), bytes, least);
  if (!address) return std::unexpected(address.error());
  if (const auto sent = send_(id, memory->get()); !sent) {
    device_.unmap_host({*address, bytes});
    return std::unexpected(sent.error());
  }
  return *address;
}

void HostBlocks::mapped(std::uint64_t id) {
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || !std::exchange(found->second.on_its_way, false)) return;
  --unmapped_;
}

Result<std::byte*> HostBlocks::find(std::uint64_t id, std::uint64_t offset,
                                    std::uint64_t bytes) const {
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || offset > found->second.range.bytes ||
      bytes > found->second.range.bytes - offset) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} bytes from {} on are not in host memory {}", bytes, offset, id));
  }
  return reinterpret_cast<std::byte*>(found->second.range.base + offset);
}

bool HostBlocks::owns(device::Address address, std::uint64_t bytes) const {
  const auto next = sizes_.upper_bound(address);
  if (next == sizes_.begin()) return false;
  const auto& [base, size] = *std::prev(next);
  return device::AddressRange{base, size}.contains(address, bytes);
}

void HostBlocks::note_ranges() {
  auto ranges = std::make_shared<std::vector<device::AddressRange>>();
  for (const auto& [base, size] : sizes_) ranges->push_back({base, size});
  ranges_ = ranges->empty() ? nullptr : std::move(ranges);
}

Result<device::AddressRange> HostBlocks::retire(std::uint64_t id) {
  const auto found = blocks_.find(id);
  if (found == blocks_.end()) return fail(ErrorCode::kInvalidValue, "no such host memory");
  const device::AddressRange range = found->second.range;
  mapped(id);
  blocks_.erase(found);
  sizes_.erase(range.base);
  note_ranges();
  const MutexLock lock(mutex_);
  retired_.push_back(range);
  return range;
}

void HostBlocks::finish_free(device::AddressRange range) {
  {
    const MutexLock lock(mutex_);
    const auto same = [&](const device::AddressRange& each) { return each.base == range.base; };
    SLATE_CHECK(std::erase_if(retired_, same) == 1);
  }
  device_.unmap_host(range);
  bytes_.fetch_sub(range.bytes);
  if (account_ != nullptr) account_->give(range.bytes);
}

void HostBlocks::release() {
  while (!blocks_.empty()) (void)retire(blocks_.begin()->first);
  std::vector<device::AddressRange> left;
  {
    const MutexLock lock(mutex_);
    left = retired_;
  }
  for (const device::AddressRange& range : left) finish_free(range);
}

}  // namespace slate::daemon
