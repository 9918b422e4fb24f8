// Host memory that the device reaches: what Session says to the daemon about it.
#include "ipc/host_memory.h"

#include <algorithm>

#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

namespace {

/// Of less, the copies cost no more than the daemon's mapping.
constexpr std::uint64_t kLeastRegistered = 64 << 10;

std::uint64_t pages_up(std::uint64_t address) {
  return (address + HostBlocks::kPage - 1) / HostBlocks::kPage * HostBlocks::kPage;
}

}  // namespace

/// A block without a place in this process yet. kHostMapped is still to be said.
Result<HostBlock> Session::request_host(std::uint64_t bytes, UniqueFd& fd, std::uint64_t least) {
  HostBlock block{++next_id_, 0, bytes, 0, false, false};
  auto reply =
      call<ipc::HostReply>(CommandType::kHostAllocate, ipc::HostAllocate{block.id, bytes, least});
  if (!reply) return std::unexpected(reply.error());
  block.device_address = reply->address;
  reply->path[sizeof(reply->path) - 1] = '\0';
  auto opened = ipc::HostMemory::open(reply->path, bytes);
  if (!opened) {
    (void)post(CommandType::kHostFree, ipc::IdCommand{block.id});
    return std::unexpected(opened.error());
  }
  fd = std::move(*opened);
  return block;
}

Result<HostBlock> Session::allocate_host(std::uint64_t bytes) {
  const std::uint64_t padded = pages_up(bytes);
  if (padded < bytes || padded == 0) return fail(ErrorCode::kOutOfMemory, "too much host memory");
  UniqueFd fd;
  auto block = request_host(padded, fd);
  if (!block) return block;
  const auto address = map_shared(fd, padded, block->device_address);
  if (!address) {
    (void)post(CommandType::kHostFree, ipc::IdCommand{block->id});
    return std::unexpected(address.error());
  }
  block->address = *address;
  host_blocks_.insert(*block);
  if (auto ok = post(CommandType::kHostMapped, ipc::IdCommand{block->id}); !ok)
    return std::unexpected(ok.error());
  return block;
}

Result<std::uint64_t> Session::allocate_slab(std::uint64_t bytes) {
  const auto block = allocate_host(bytes);
  if (!block) return std::unexpected(block.error());
  return block->address;
}

Result<void> Session::free_host(std::uint64_t address) {
  const auto block = host_blocks_.take(address);
  if (!block) return fail(ErrorCode::kInvalidValue, "no host memory begins at this address");
  // The daemon's mapping lives until the work that uses it is done.
  unmap_shared(block->address, block->bytes);
  return post(CommandType::kHostFree, ipc::IdCommand{block->id});
}

/// A block at one address in both processes. Where the daemon's choice is taken here, it is asked
/// for one behind what is there.
Result<std::uint64_t> Session::get_managed_block(std::uint64_t bytes) {
  constexpr int kAttempts = 32;
  std::uint64_t least = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd;
    auto block = request_host(bytes, fd, least);
    if (!block) return std::unexpected(block.error());
    const auto mapped = map_shared_at(fd, bytes, block->device_address);
    if (!mapped || !*mapped) (void)post(CommandType::kHostFree, ipc::IdCommand{block->id});
    if (!mapped) return std::unexpected(mapped.error());
    if (!*mapped) {
      least = std::max(least, end_of_taken(block->device_address, bytes));
      continue;
    }
    block->address = block->device_address;
    block->managed = true;
    host_blocks_.insert(*block);
    managed_guard_.add(block->address, bytes);
    if (auto ok = post(CommandType::kHostMapped, ipc::IdCommand{block->id}); !ok)
      return std::unexpected(ok.error());
    return block->address;
  }
  return fail(ErrorCode::kOutOfMemory,
              "managed memory: no address was found that is free in the program and the daemon");
}

Result<void> Session::give_back_managed_block(std::uint64_t address) {
  managed_guard_.remove(address);
  return free_host(address);
}

Result<std::uint64_t> Session::allocate_managed(std::uint64_t bytes, std::uint32_t tag,
                                                std::uint32_t flags) {
  const auto address = managed_.allocate(bytes);
  if (address) memory_.insert({*address, bytes, tag, flags});
  return address;
}

Result<void> Session::free_managed(std::uint64_t address, std::uint32_t tag) {
  if (!memory_.erase(address, tag))
    return fail(ErrorCode::kInvalidValue, "no managed allocation begins at the address");
  if (auto ok = synchronize(ipc::TargetKind::kSession, 0); !ok) return ok;
  return managed_.free(address);
}

Result<void> Session::register_host(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = pages_up(address);
  const std::uint64_t last = (address + bytes) / HostBlocks::kPage * HostBlocks::kPage;
  if (last <= first || last - first < kLeastRegistered || !is_replaceable(first, last - first))
    return fail(ErrorCode::kNotSupported, "memory that cannot be shared in its place");
  UniqueFd fd;
  auto block = request_host(last - first, fd);
  if (!block) return std::unexpected(block.error());
  if (auto ok = replace_with_shared(fd, first, last - first); !ok) {
    (void)post(CommandType::kHostFree, ipc::IdCommand{block->id});
    return ok;
  }
  block->address = first;
  block->replaces = true;
  host_blocks_.insert(*block);
  return post(CommandType::kHostMapped, ipc::IdCommand{block->id});
}

Result<void> Session::unregister_host(std::uint64_t address, std::uint64_t bytes) {
  const auto block = host_blocks_.touching(address, bytes);
  if (!block || !block->replaces) return {};
  // A failed session runs nothing any more.
  (void)synchronize(ipc::TargetKind::kSession, 0);
  (void)host_blocks_.take(block->address);
  if (auto ok = replace_with_private(block->address, block->bytes); !ok) return ok;
  return post(CommandType::kHostFree, ipc::IdCommand{block->id});
}

}  // namespace slate::client
