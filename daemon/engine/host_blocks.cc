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

/// What a block takes of its session's window, where blocks are 2 MiB apart.
std::uint64_t bytes_in_window(std::uint64_t bytes) {
  constexpr std::uint64_t kApart = 2 << 20;
  return (bytes + kApart - 1) / kApart * kApart;
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
  add(id, {*address, bytes}, true);
  return *address;
}

void HostBlocks::add(std::uint64_t id, device::AddressRange range, bool on_its_way) {
  blocks_.emplace(id, Block{range, on_its_way});
  sizes_.emplace(range.base, range.bytes);
  if (on_its_way) ++unmapped_;
  bytes_.fetch_add(range.bytes);
  note_ranges();
}

void HostBlocks::note(std::uint64_t id, const Block& block, bool retired, int memory) {
  if (!notes_.there) return;
  notes_.there(id,
               {.address = block.range.base,
                .bytes = block.range.bytes,
                .on_its_way = block.on_its_way ? 1u : 0u,
                .retired = retired ? 1u : 0u},
               memory);
}

Result<void> HostBlocks::make_again(std::uint64_t id, const BookHost& block, int memory) {
  const auto address = device_.map_host(memory, block.bytes, block.address);
  if (!address) return std::unexpected(address.error());
  if (*address != block.address) {
    device_.unmap_host({*address, block.bytes});
    return fail(ErrorCode::kUnavailable, "an address of pinned memory is taken in the next engine");
  }
  // It is there already, whatever others may have by now.
  if (account_ != nullptr) account_->take_anyway(block.bytes);
  if (block.address >= window_) next_ = std::max(next_, *address + bytes_in_window(block.bytes));
  add(id, {*address, block.bytes}, block.on_its_way != 0);
  return {};
}

/// The memory, mapped by the device and on its way to the client.
Result<device::Address> HostBlocks::make(std::uint64_t id, std::uint64_t bytes,
                                         std::uint64_t least) {
  const auto memory = ipc::make_shared_memory("slate-pinned", bytes);
  if (!memory) return std::unexpected(memory.error());
  const auto address = device_.map_host(memory->get(), bytes, wish_for(bytes, least));
  if (!address) return std::unexpected(address.error());
  note(id, {{*address, bytes}, true}, false, memory->get());
  if (const auto sent = send_(id, memory->get()); !sent) {
    device_.unmap_host({*address, bytes});
    if (notes_.gone) notes_.gone(id);
    return std::unexpected(sent.error());
  }
  return *address;
}

/// An address in the session's window that no block of it has had for long; else `least`.
device::Address HostBlocks::wish_for(std::uint64_t bytes, device::Address least) {
  constexpr std::uint64_t kBytes = device::Device::kHostWindowBytes;
  const std::uint64_t taken = bytes_in_window(bytes);
  if (window_ == 0 || taken > kBytes || least > window_) return least;
  if (next_ + taken > window_ + kBytes) next_ = window_;
  return std::exchange(next_, next_ + taken);
}

void HostBlocks::mapped(std::uint64_t id) {
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || !std::exchange(found->second.on_its_way, false)) return;
  --unmapped_;
  note(id, found->second, false);
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

std::optional<device::AddressRange> HostBlocks::block_of(device::Address address) const {
  const auto next = sizes_.upper_bound(address);
  if (next == sizes_.begin()) return std::nullopt;
  const auto& [base, size] = *std::prev(next);
  const device::AddressRange range{base, size};
  return range.contains(address, 1) ? std::optional(range) : std::nullopt;
}

bool HostBlocks::owns(device::Address address, std::uint64_t bytes) const {
  const auto block = block_of(address);
  return block && block->contains(address, bytes);
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
  note(id, found->second, true);
  blocks_.erase(found);
  sizes_.erase(range.base);
  note_ranges();
  const MutexLock lock(mutex_);
  retired_.emplace(range.base, Retired{range, id});
  return range;
}

void HostBlocks::finish_free(device::AddressRange range) {
  std::uint64_t id = 0;
  {
    const MutexLock lock(mutex_);
    const auto retired = retired_.extract(range.base);
    SLATE_CHECK(!retired.empty());
    id = retired.mapped().id;
  }
  device_.unmap_host(range);
  if (notes_.gone) notes_.gone(id);
  bytes_.fetch_sub(range.bytes);
  if (account_ != nullptr) account_->give(range.bytes);
}

void HostBlocks::release() {
  std::vector<device::AddressRange> left;
  for (const auto& [id, block] : blocks_) left.push_back(block.range);
  {
    const MutexLock lock(mutex_);
    for (const auto& [base, retired] : retired_) left.push_back(retired.range);
  }
  while (!blocks_.empty()) (void)retire(blocks_.begin()->first);
  for (const device::AddressRange& range : left) finish_free(range);
}

}  // namespace slate::daemon
