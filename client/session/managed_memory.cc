#include "client/session/managed_memory.h"

#include <algorithm>
#include <iterator>

#include "client/session/host_blocks.h"

namespace slate::client {
namespace {

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

Result<std::uint64_t> ManagedMemory::allocate(std::uint64_t bytes) {
  const bool shared = bytes <= kLargestShared;
  const std::uint64_t size = round_up(bytes, shared ? kAlign : HostBlocks::kPage);
  if (size < bytes) return fail(ErrorCode::kOutOfMemory, "too much managed memory");
  const MutexLock lock(mutex_);
  std::uint64_t address = 0;
  if (!shared) {
    const auto block = get_(size);
    if (!block) return block;
    address = *block;
  } else {
    for (SharedBlock& block : shared_) {
      address = take(block, size);
      if (address != 0) break;
    }
    if (address == 0) {
      const auto block = get_(kSharedBlockBytes);
      if (!block) return block;
      shared_.push_back({*block, {{*block, kSharedBlockBytes}}});
      address = take(shared_.back(), size);
    }
  }
  pieces_.emplace(address, size);
  return address;
}

/// First fit; 0 when there is no room.
std::uint64_t ManagedMemory::take(SharedBlock& block, std::uint64_t bytes) {
  const auto found =
      std::ranges::find_if(block.free, [bytes](const auto& hole) { return hole.second >= bytes; });
  if (found == block.free.end()) return 0;
  const auto [address, room] = *found;
  block.free.erase(found);
  if (room > bytes) block.free.emplace(address + bytes, room - bytes);
  return address;
}

void ManagedMemory::put(SharedBlock& block, std::uint64_t address, std::uint64_t bytes) {
  auto hole = block.free.emplace(address, bytes).first;
  if (const auto next = std::next(hole);
      next != block.free.end() && address + bytes == next->first) {
    hole->second += next->second;
    block.free.erase(next);
  }
  if (hole == block.free.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second != address) return;
  before->second += hole->second;
  block.free.erase(hole);
}

Result<void> ManagedMemory::free(std::uint64_t address) {
  const MutexLock lock(mutex_);
  const auto piece = pieces_.find(address);
  if (piece == pieces_.end())
    return fail(ErrorCode::kInvalidValue, "no managed memory begins at this address");
  const std::uint64_t bytes = piece->second;
  pieces_.erase(piece);
  const auto block = std::ranges::find_if(shared_, [address](const SharedBlock& each) {
    return address >= each.address && address - each.address < kSharedBlockBytes;
  });
  if (block == shared_.end()) return give_back_(address);
  put(*block, address, bytes);
  // The last shared block stays, so that a program which allocates and frees in turn does not map
  // each time.
  if (block->free.begin()->second < kSharedBlockBytes || shared_.size() == 1) return {};
  const std::uint64_t whole = block->address;
  shared_.erase(block);
  return give_back_(whole);
}

}  // namespace slate::client
