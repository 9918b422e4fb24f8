// Pinned host memory: shared with the daemon, so that copies from and to it are single transfers
// and kernels reach it. Where there is none to share it is ordinary memory, and copies pass through
// the staging slots as for any other; then what asks for a device address of it fails. Memory that
// the program registers is replaced by shared memory at once: copies that only begin later, and
// read then, need that as much as kernels do.
#include <bit>
#include <cstdlib>

#include "client/cudart/capture.h"
#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

constexpr std::size_t kPage = client::HostBlocks::kPage;

constexpr unsigned kAllocFlags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
constexpr unsigned kRegisterFlags = cudaHostRegisterPortable | cudaHostRegisterMapped |
                                    cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;

/// The device's address of host memory.
Maybe<std::uint64_t> mapped_address(Session& session, const void* host) {
  const auto block = session.host_blocks().find(address_of(host));
  if (block) return block->device_address + (address_of(host) - block->address);
  return std::unexpected<Failure>(
      Error{ErrorCode::kNotSupported, "this host memory could not be mapped for the device"});
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

/// Of a session that has ended. Its neighbours on the first and the last page may be in use.
void unmap_piece(const client::Range& piece) {
  const std::uint64_t first = whole_pages(piece.address);
  const std::uint64_t end = piece.address + std::bit_ceil(piece.bytes);
  if (first < end / kPage * kPage) client::unmap_shared(first, end / kPage * kPage - first);
}

Result<std::uint64_t> allocate_block(Session& session, std::size_t bytes) {
  const auto block = session.allocate_host(bytes);
  if (!block) return std::unexpected(block.error());
  return block->address;
}

cudaError_t allocate(void** address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || (flags & ~kAllocFlags) != 0) return deny(cudaErrorInvalidValue);
    *address = nullptr;
    if (auto ok = check_capture_allows(session); !ok) return ok;
    if (bytes == 0) return {};
    if (whole_pages(bytes) < bytes) return deny(cudaErrorMemoryAllocation);
    client::AllocationTable& pinned = Process::get().pinned();
    const bool small = bytes <= client::HostPool::kLargest;
    const auto shared = small ? session.allocate_host_piece(bytes) : allocate_block(session, bytes);
    if (shared) {
      pinned.insert({*shared, bytes, small ? Process::kTagPiece : Process::kTagShared, flags});
      *address = pointer_to(*shared);
      return {};
    }
    if ((flags & cudaHostAllocMapped) != 0) return std::unexpected<Failure>(shared.error());
    if (is_sticky(shared.error().code)) return std::unexpected<Failure>(shared.error());
    void* memory = std::aligned_alloc(kPage, whole_pages(bytes));
    if (memory == nullptr) return deny(cudaErrorMemoryAllocation);
    pinned.insert({address_of(memory), bytes, Process::kTagAllocated, flags});
    *address = memory;
    return {};
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return allocate(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return allocate(address, bytes, flags);
}

cudaError_t cudaFreeHost(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = check_capture_allows(session); !ok) return ok;
    if (address == nullptr) return {};
    slate::client::AllocationTable& pinned = Process::get().pinned();
    const std::uint64_t at = address_of(address);
    const auto range = pinned.find(at);
    if (pinned.erase(at, Process::kTagAllocated)) {
      std::free(address);
      return {};
    }
    if (range && pinned.erase(at, Process::kTagPiece)) {
      if (!session.free_host_piece(at)) unmap_piece(*range);
      return {};
    }
    if (!range || !pinned.erase(at, Process::kTagShared)) return deny(cudaErrorInvalidValue);
    if (session.host_blocks().find(at)) return session.free_host(at);
    // Of a session that has ended.
    slate::client::unmap_shared(at, whole_pages(range->bytes));
    return {};
  });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    slate::client::AllocationTable& pinned = Process::get().pinned();
    if (pinned.touches(address_of(address), bytes)) {
      return deny(cudaErrorHostMemoryAlreadyRegistered);
    }
    if (!slate::client::is_mapped(address_of(address), bytes)) return deny(cudaErrorInvalidValue);
    const auto shared = session.register_host(address_of(address), bytes);
    // Kernels reach whole pages only.
    const bool whole = address_of(address) % kPage == 0 && bytes % kPage == 0;
    if ((flags & cudaHostRegisterMapped) != 0 && !(shared && whole)) {
      if (shared) (void)session.unregister_host(address_of(address), bytes);
      return std::unexpected<Failure>(
          slate::Error{slate::ErrorCode::kNotSupported,
                       "cudaHostRegisterMapped of this memory: kernels cannot be given it"});
    }
    pinned.insert({address_of(address), bytes, Process::kTagRegistered, flags});
    return {};
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(cudaErrorInvalidValue);
    slate::client::AllocationTable& pinned = Process::get().pinned();
    const auto range = pinned.find(address_of(address));
    if (!range || !pinned.erase(address_of(address), Process::kTagRegistered)) {
      return deny(cudaErrorHostMemoryNotRegistered);
    }
    return session.unregister_host(range->address, range->bytes);
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* address) {
  return with_session([&](Session&) -> Answer {
    const auto range = Process::get().pinned().find(address_of(address));
    if (flags == nullptr || !range) return deny(cudaErrorInvalidValue);
    *flags = range->flags;
    return {};
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* address, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    if (device == nullptr || flags != 0 || !Process::get().pinned().find(address_of(address))) {
      return deny(cudaErrorInvalidValue);
    }
    const auto mapped = mapped_address(session, address);
    if (!mapped) return std::unexpected(mapped.error());
    *device = pointer_to(*mapped);
    return {};
  });
}

}  // extern "C"
