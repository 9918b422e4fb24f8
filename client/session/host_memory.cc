#include "client/session/host_memory.h"

#include <algorithm>

#include "client/session/session.h"

namespace slate::client {

using ipc::CommandType;

namespace {

/// Of less, the copies cost no more than the daemon's mapping.
constexpr std::uint64_t kLeastRegistered = 64 << 10;

std::uint64_t pages_up(std::uint64_t address) {
  return (address + HostBlocks::kPage - 1) / HostBlocks::kPage * HostBlocks::kPage;
}

}  // namespace

HostMemory::HostMemory(Session& session)
    : session_(session),
      pool_({[this](std::uint64_t bytes) { return allocate_slab(bytes); },
             [this](std::uint64_t address) { (void)free(address); },
             [this] { return session_.streams().progress().newest(); },
             [this](std::uint64_t position) {
               const auto known = session_.streams().progress().finished_up_to(position);
               if (known) return *known;
               return session_.waiting().finished(ipc::TargetKind::kSession, 0).value_or(false);
             }}),
      managed_([this](std::uint64_t bytes) { return get_managed_block(bytes); },
               [this](std::uint64_t address) { return give_back_managed_block(address); }),
      guard_({[this](std::uint64_t mark) {
                return session_.streams().progress().reached(mark).value_or(true);
              },
              [this] { return !session_.wire().channel().check(); },
              [this] { return session_.host_functions().is_own_thread(); }}) {}

void HostMemory::unmap_unnamed() {
  blocks_.unmap_managed();
  // Pieces in use the program may still read, as it may large blocks.
  pool_.for_each_empty(unmap_shared);
}

/// The block has its place in this process.
Result<void> HostMemory::mapped(const HostBlock& block) {
  blocks_.insert(block);
  return session_.wire().post(CommandType::kHostMapped, ipc::IdCommand{block.id});
}

/// The daemon's mapping lives until the work that uses it is done.
Result<void> HostMemory::give_back(std::uint64_t id) {
  return session_.wire().post(CommandType::kHostFree, ipc::IdCommand{id});
}

/// A block without a place in this process yet: mapped() is still to come.
Result<HostBlock> HostMemory::request(std::uint64_t bytes, UniqueFd& fd, std::uint64_t least) {
  HostBlock block{session_.wire().next_id(), 0, bytes, 0, false, false};
  // Descriptors come in the order of the commands.
  const MutexLock lock(requests_mutex_);
  const auto reply = session_.wire().call<ipc::AddressReply>(
      CommandType::kHostAllocate, ipc::HostAllocate{block.id, bytes, least});
  if (!reply) return std::unexpected(reply.error());
  block.device_address = reply->address;
  auto memory = session_.wire().channel().receive_memory(block.id);
  if (!memory) {
    (void)give_back(block.id);
    return std::unexpected(memory.error());
  }
  fd = std::move(*memory);
  return block;
}

Result<HostBlock> HostMemory::allocate(std::uint64_t bytes) {
  const std::uint64_t padded = pages_up(bytes);
  if (padded < bytes || padded == 0) return fail(ErrorCode::kOutOfMemory, "too much host memory");
  UniqueFd fd;
  auto block = request(padded, fd);
  if (!block) return block;
  const auto address = map_shared(fd, padded, block->device_address);
  if (!address) {
    (void)give_back(block->id);
    return std::unexpected(address.error());
  }
  block->address = *address;
  if (auto ok = mapped(*block); !ok) return std::unexpected(ok.error());
  return block;
}

Result<std::uint64_t> HostMemory::allocate_slab(std::uint64_t bytes) {
  const auto block = allocate(bytes);
  if (!block) return std::unexpected(block.error());
  return block->address;
}

Result<void> HostMemory::free(std::uint64_t address) {
  const auto block = blocks_.take(address);
  if (!block) return fail(ErrorCode::kInvalidValue, "no host memory begins at this address");
  unmap_shared(block->address, block->bytes);
  return give_back(block->id);
}

/// A block at one address in both processes. Where the daemon's choice is taken here, it is asked
/// for one behind what is there.
Result<std::uint64_t> HostMemory::get_managed_block(std::uint64_t bytes) {
  constexpr int kAttempts = 32;
  std::uint64_t least = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd;
    auto block = request(bytes, fd, least);
    if (!block) return std::unexpected(block.error());
    const auto placed = map_shared_at(fd, bytes, block->device_address);
    if (!placed || !*placed) (void)give_back(block->id);
    if (!placed) return std::unexpected(placed.error());
    if (!*placed) {
      least = std::max(least, end_of_taken(block->device_address, bytes));
      continue;
    }
    block->address = block->device_address;
    block->managed = true;
    guard_.add(block->address, bytes);
    if (auto ok = mapped(*block); !ok) return std::unexpected(ok.error());
    return block->address;
  }
  return fail(ErrorCode::kOutOfMemory,
              "managed memory: no address was found that is free in the program and the daemon");
}

Result<void> HostMemory::give_back_managed_block(std::uint64_t address) {
  guard_.remove(address);
  return free(address);
}

Result<std::uint64_t> HostMemory::allocate_managed(std::uint64_t bytes, std::uint32_t tag,
                                                   std::uint32_t flags) {
  const auto address = managed_.allocate(bytes);
  if (address) session_.memory().table().insert({*address, bytes, tag, flags});
  return address;
}

Result<void> HostMemory::free_managed(std::uint64_t address, std::uint32_t tag) {
  if (!session_.memory().table().erase(address, tag))
    return fail(ErrorCode::kInvalidValue, "no managed allocation begins at the address");
  if (auto ok = session_.waiting().synchronize(ipc::TargetKind::kSession, 0); !ok) return ok;
  return managed_.free(address);
}

Result<void> HostMemory::register_pages(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t first = pages_up(address);
  const std::uint64_t last = (address + bytes) / HostBlocks::kPage * HostBlocks::kPage;
  if (last <= first || last - first < kLeastRegistered || !is_replaceable(first, last - first))
    return fail(ErrorCode::kNotSupported, "memory that cannot be shared in its place");
  UniqueFd fd;
  auto block = request(last - first, fd);
  if (!block) return std::unexpected(block.error());
  if (auto ok = replace_with_shared(fd, first, last - first); !ok) {
    (void)give_back(block->id);
    return ok;
  }
  block->address = first;
  block->replaces = true;
  return mapped(*block);
}

Result<void> HostMemory::unregister_pages(std::uint64_t address, std::uint64_t bytes) {
  const auto block = blocks_.touching(address, bytes);
  if (!block || !block->replaces) return {};
  // A failed session runs nothing any more.
  (void)session_.waiting().synchronize(ipc::TargetKind::kSession, 0);
  (void)blocks_.take(block->address);
  if (auto ok = replace_with_private(block->address, block->bytes); !ok) return ok;
  return give_back(block->id);
}

}  // namespace slate::client
