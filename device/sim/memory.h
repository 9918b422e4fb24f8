// The simulated device memory. Device addresses are host addresses inside one large reservation, so
// that an access costs one table look-up and no translation. Not a heap: it deals in chunks of 2
// MiB, as the GPU's own virtual memory does. It does not know what memory contains. Thread: any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "device/device.h"

namespace slate::sim {

inline constexpr std::uint64_t kChunkBytes = 2u << 20;  // as the H200's allocation granularity
inline constexpr int kChunkShift = 21;

/// Generic addresses of the shared and local windows, far from any host address. A generic address
/// is window base + offset.
inline constexpr std::uint64_t kSharedWindow = 0x0100'0000'0000'0000u;
inline constexpr std::uint64_t kLocalWindow = 0x0200'0000'0000'0000u;
inline constexpr std::uint64_t kWindowBytes = 0x0000'0001'0000'0000u;

/// Addresses that one launch may touch. Plain data, copied freely. The tables that it points to
/// outlive it.
struct MemoryView {
  /// Tag of a view without an arena: no chunk ever carries it.
  static constexpr std::uint16_t kNoOwner = 0xffff;

  std::uint64_t space_base = 0;  // arena of the launch, in whole chunks
  std::uint64_t space_bytes = 0;
  /// Tag of the reservation of each chunk of the arena; 0: not mapped.
  const std::atomic<std::uint16_t>* owners = nullptr;
  std::uint16_t tag = kNoOwner;  // tag of the reservation that the arena lies in
  /// The module's .global and .const variables; may be empty.
  device::AddressRange globals;
  device::AddressRange constants;
  /// LaunchSpec::control and its fence's, and the own variables of a kernel whose globals are
  /// another module's; may be empty.
  std::array<device::AddressRange, 4> others;
  /// LaunchSpec::host, which KernelLaunch keeps alive; null: none.
  const std::vector<device::AddressRange>* host = nullptr;

  /// Whether [address, address + bytes) may be read and written. Requires: bytes <= 16 and natural
  /// alignment, so that it lies in one chunk.
  bool allows(std::uint64_t address, std::uint32_t bytes) const {
    const std::uint64_t offset = address - space_base;
    if (offset < space_bytes &&
        owners[offset >> kChunkShift].load(std::memory_order_relaxed) == tag) [[likely]] {
      return true;
    }
    return globals.contains(address, bytes) ||
           std::ranges::any_of(others,
                               [&](const auto& each) { return each.contains(address, bytes); }) ||
           (host != nullptr && allows_host(address, bytes));
  }
  bool allows_host(std::uint64_t address, std::uint32_t bytes) const {
    const auto next = std::upper_bound(
        host->begin(), host->end(), address,
        [](std::uint64_t at, const device::AddressRange& range) { return at < range.base; });
    return next != host->begin() && std::prev(next)->contains(address, bytes);
  }
};

/// Reservation, mapping and accounting behind Device::reserve, map and unmap. Thread: any.
class Memory {
 public:
  /// `capacity`: bytes of physical memory that can be mapped in total; a multiple of kChunkBytes.
  static Result<std::unique_ptr<Memory>> make(std::uint64_t capacity);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint64_t capacity() const { return capacity_; }
  /// Bytes that are mapped, or were taken by take().
  std::uint64_t mapped_bytes() const;
  /// Counts bytes of memory without addresses, as arrays have. Errors: kOutOfMemory beyond
  /// capacity.
  Result<void> take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes);

  /// As in device::Device: in the upper half of the space, so that what is reserved without a wish
  /// is not in the way.
  device::Device::Window window_of(std::uint64_t session, std::uint64_t most) const;
  /// Reserves addresses not below `least`, from a multiple of `align` on. Errors: kInvalidValue for
  /// a size that is 0 or no multiple of kChunkBytes; kOutOfMemory when the address space is used
  /// up.
  Result<device::Address> reserve(std::uint64_t bytes, device::Address least = 0,
                                  std::uint64_t align = kChunkBytes);
  /// Gives the addresses back, and the memory that is still mapped there. Ignores an unknown range.
  void unreserve(device::AddressRange range);
  /// As in device::Device. Errors: kInvalidValue unless `range` is whole, unmapped chunks of one
  /// reservation; kOutOfMemory beyond capacity.
  Result<void> map(device::AddressRange range);
  /// As in device::Device. The memory does not count as mapped.
  Result<void> map_on_host(device::AddressRange range);
  /// As in device::Device; the memory is counted once. Errors: kInvalidValue unless `mapped` begins
  /// a mapping of that size.
  Result<void> map_again(device::AddressRange range, device::Address mapped);
  Result<void> unmap(device::AddressRange range);
  /// As in device::Device. Memory counts in every Memory that has it mapped.
  Result<UniqueFd> export_memory(device::AddressRange range);
  Result<void> map_exported(device::AddressRange range, int memory);
  /// As in device::Device. The memory is the host's and does not count as mapped.
  Result<device::Address> map_host(int fd, std::uint64_t bytes, device::Address least);
  void unmap_host(device::AddressRange range);

  /// The view of a launch with this arena: whole chunks inside one reservation, or empty.
  Result<MemoryView> view(device::AddressRange arena) const;
  /// Whether all of [address, address + bytes) is mapped, by any owner. For copies by the host.
  /// Takes no lock.
  bool is_mapped(device::Address address, std::uint64_t bytes) const;

 private:
  struct Mapping {
    device::AddressRange range;
    std::shared_ptr<UniqueFd> pages;  // same for all mappings of one memory
    bool is_host = false;             // whether it is not the device's
  };
  struct Reservation {
    device::AddressRange range;
    std::uint16_t tag;
    std::vector<Mapping> mapped;
  };

  enum class Counted { kNew, kAlready, kHost };

  Memory() = default;

  Result<void> back(device::AddressRange range, std::shared_ptr<UniqueFd> pages, Counted counted);
  Reservation* find(device::AddressRange range) SLATE_REQUIRES(mutex_);
  Result<std::uint16_t> unused_tag() SLATE_REQUIRES(mutex_);
  Result<Reservation*> find_unmapped(device::AddressRange range) SLATE_REQUIRES(mutex_);
  std::optional<std::vector<Mapping>::iterator> find_mapping(device::AddressRange range)
      SLATE_REQUIRES(mutex_);
  void release(const Reservation& reservation, const Mapping& mapping) SLATE_REQUIRES(mutex_);
  void set_owner(device::AddressRange range, std::uint16_t tag);
  std::size_t chunk(device::Address address) const {
    return (address - space_base_) >> kChunkShift;
  }

  std::uint64_t capacity_ = 0;
  std::uint64_t space_base_ = 0;
  std::uint64_t space_bytes_ = 0;
  void* mapping_ = nullptr;  // as mmap returned it; space_base_ is the first whole chunk in it
  std::uint64_t mapping_bytes_ = 0;
  std::unique_ptr<std::atomic<std::uint16_t>[]> owners_;
  mutable Mutex mutex_;
  std::uint64_t mapped_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint16_t next_tag_ SLATE_GUARDED_BY(mutex_) = 1;
  std::vector<Reservation> reservations_ SLATE_GUARDED_BY(mutex_);  // by rising address
};

}  // namespace slate::sim
