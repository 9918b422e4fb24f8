// The simulated device memory. Device addresses are host addresses inside one large reservation, so that an
// access costs one table look-up and no translation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace slate::sim {

inline constexpr std::uint64_t kChunkBytes = 2u << 20;  // as the H200's allocation granularity
inline constexpr int kChunkShift = 21;

/// Generic addresses of the shared and local windows: far from any host address. A generic address is
/// window base + offset.
inline constexpr std::uint64_t kSharedWindow = 0x0100'0000'0000'0000u;
inline constexpr std::uint64_t kLocalWindow = 0x0200'0000'0000'0000u;
inline constexpr std::uint64_t kWindowBytes = 0x0000'0001'0000'0000u;

/// Which addresses one launch may touch. Plain data, copied freely; the tables it points to outlive it.
struct MemoryView {
  std::uint64_t space_base = 0;              // first address of the reservation
  std::uint64_t space_bytes = 0;
  const std::atomic<std::uint16_t>* owners = nullptr;  // per chunk: 0 = not mapped, else the reservation's tag
  std::uint16_t tag = 0;                     // the launch's own reservation
  /// The module's .global and .const variables (may be empty).
  device::AddressRange globals;
  device::AddressRange constants;

  /// True if [address, address + bytes) may be read and written. Requires: bytes <= 16 and the access is
  /// naturally aligned, so it lies in one chunk.
  bool allows(std::uint64_t address, std::uint32_t bytes) const {
    const std::uint64_t offset = address - space_base;
    if (offset < space_bytes && owners[offset >> kChunkShift].load(std::memory_order_relaxed) == tag)
        [[likely]] {
      return true;
    }
    return globals.contains(address, bytes);
  }
};

/// Reservation, mapping and accounting behind Device::reserve, map, unmap. Thread-safe.
class Memory {
 public:
  /// `capacity`: bytes of physical memory that can be mapped in total, a multiple of kChunkBytes.
  static Result<std::unique_ptr<Memory>> make(std::uint64_t capacity);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t mapped_bytes() const;

  Result<device::Address> reserve(std::uint64_t bytes);
  void unreserve(device::AddressRange range);
  Result<void> map(device::AddressRange range);
  Result<void> unmap(device::AddressRange range);

  /// The view of a launch whose arena is `arena` (which must be, or lie in, one reservation).
  Result<MemoryView> view(device::AddressRange arena) const;
  /// True if all of [address, address + bytes) is mapped, whoever owns it. For copies by the host.
  bool is_mapped(device::Address address, std::uint64_t bytes) const;

 private:
  struct Reservation {
    device::AddressRange range;
    std::uint16_t tag;
    std::vector<device::AddressRange> mapped;
  };

  Memory() = default;

  std::uint64_t capacity_ = 0;
  std::uint64_t space_base_ = 0;
  std::uint64_t space_bytes_ = 0;
  std::unique_ptr<std::atomic<std::uint16_t>[]> owners_;
  mutable std::mutex mutex_;
  std::uint64_t mapped_ = 0;
  std::uint16_t next_tag_ = 1;
  std::vector<Reservation> reservations_;
};

}  // namespace slate::sim
