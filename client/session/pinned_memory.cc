#include "client/session/pinned_memory.h"

#include <bit>
#include <cstdlib>

#include "client/session/box_copy.h"
#include "client/session/process.h"

namespace slate::client {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + HostBlocks::kPage - 1) / HostBlocks::kPage * HostBlocks::kPage;
}

/// Of a session that has ended. Its neighbours on the first and the last page may be in use.
void unmap_piece(const Range& piece) {
  const std::uint64_t first = whole_pages(piece.address);
  const std::uint64_t end = piece.address + std::bit_ceil(piece.bytes);
  if (first < end / HostBlocks::kPage * HostBlocks::kPage)
    unmap_shared(first, end / HostBlocks::kPage * HostBlocks::kPage - first);
}

Result<std::uint64_t> allocate_block(Session& session, std::size_t bytes) {
  const auto block = session.host_memory().allocate(bytes);
  if (!block) return std::unexpected(block.error());
  return block->address;
}

}  // namespace

Allowed<void*> allocate_pinned(Session& session, std::size_t bytes, bool mapped,
                               std::uint32_t flags) {
  if (whole_pages(bytes) < bytes) return refuse(Refusal::kOutOfMemory);
  AllocationTable& pinned = Process::get().pinned();
  const bool small = bytes <= HostPool::kLargest;
  auto shared =
      small ? session.host_memory().allocate_piece(bytes) : allocate_block(session, bytes);
  if (shared) {
    pinned.insert({*shared, bytes, small ? Process::kTagPiece : Process::kTagShared, flags});
    return pointer_to(*shared);
  }
  if (mapped || is_sticky(shared.error().code)) {
    return std::unexpected<Refused>(std::move(shared.error()));
  }
  void* const memory = std::aligned_alloc(HostBlocks::kPage, whole_pages(bytes));
  if (memory == nullptr) return refuse(Refusal::kOutOfMemory);
  pinned.insert({address_of(memory), bytes, Process::kTagAllocated, flags});
  return memory;
}

Allowed<void> free_pinned(Session& session, void* address) {
  if (auto waited = session.waiting().wait_to_free(); !waited) return waited;
  AllocationTable& pinned = Process::get().pinned();
  const std::uint64_t at = address_of(address);
  const auto range = pinned.find(at);
  if (pinned.erase(at, Process::kTagAllocated)) {
    std::free(address);
    return {};
  }
  if (range && pinned.erase(at, Process::kTagPiece)) {
    if (!session.host_memory().free_piece(at)) unmap_piece(*range);
    return {};
  }
  if (!range || !pinned.erase(at, Process::kTagShared)) return refuse(Refusal::kInvalidValue);
  if (session.host_memory().blocks().find(at)) return session.host_memory().free(at);
  unmap_shared(at, whole_pages(range->bytes));  // of a session that has ended
  return {};
}

Allowed<void> register_pinned(Session& session, void* address, std::size_t bytes, bool mapped,
                              std::uint32_t flags) {
  const std::uint64_t at = address_of(address);
  AllocationTable& pinned = Process::get().pinned();
  if (pinned.touches(at, bytes)) return refuse(Refusal::kAlreadyRegistered);
  if (!is_mapped(at, bytes)) return refuse(Refusal::kInvalidValue);
  const auto shared = session.host_memory().register_pages(at, bytes);
  // Kernels reach whole pages only.
  const bool whole = at % HostBlocks::kPage == 0 && bytes % HostBlocks::kPage == 0;
  if (mapped && !(shared && whole)) {
    if (shared) (void)session.host_memory().unregister_pages(at, bytes);
    return fail(ErrorCode::kNotSupported,
                "registered memory that kernels have to reach: they cannot be given this");
  }
  pinned.insert({at, bytes, Process::kTagRegistered, flags});
  return {};
}

Allowed<void> unregister_pinned(Session& session, void* address) {
  AllocationTable& pinned = Process::get().pinned();
  const auto range = pinned.find(address_of(address));
  if (!range || !pinned.erase(address_of(address), Process::kTagRegistered)) {
    return refuse(Refusal::kNotRegistered);
  }
  return session.host_memory().unregister_pages(range->address, range->bytes);
}

Result<std::uint64_t> device_address_of(Session& session, const void* host) {
  const auto block = session.host_memory().blocks().find(address_of(host));
  if (block) return block->device_address + (address_of(host) - block->address);
  return fail(ErrorCode::kNotSupported, "this host memory could not be mapped for the device");
}

}  // namespace slate::client
