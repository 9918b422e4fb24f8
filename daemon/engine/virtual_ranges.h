// VirtualRanges: what one session does with addresses and memory apart (cuMemAddressReserve,
// cuMemCreate, cuMemMap). It has reservations, which are addresses outside of the arena, and
// physical allocations, which are charged like others. Mappings show an allocation in a
// reservation, as often as the program likes.
//
// A physical allocation is a bare one of the MemoryManager. That has it at an address of the arena,
// which the program does not know, and holds it until the last mapping is gone. With a swap it
// leaves the device and comes back, in all places where it is mapped.
//
// An unmapped range stays mapped until no work uses it: the caller waits for that work. Until then
// nothing else is mapped there, and the reservation stays.
//
// Thread: the session's, but for finish_unmap().
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

class VirtualRanges {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;

  static constexpr std::uint64_t kGranule = ipc::kVirtualGranule;
  static constexpr std::size_t kMostReservations = 4096;
  static constexpr std::uint64_t kMostReserved = std::uint64_t{8} << 40;  // bytes of all
  static constexpr std::size_t kMostMemories = 65536;
  static constexpr std::size_t kMostMappings = 65536;

  /// Both outlive it.
  VirtualRanges(device::Device& device, MemoryManager& memory) : device_(device), memory_(memory) {}
  /// Requires: release() was called.
  ~VirtualRanges();
  VirtualRanges(const VirtualRanges&) = delete;
  VirtualRanges& operator=(const VirtualRanges&) = delete;

  /// Errors: kInvalidValue, kLimit; kOutOfMemory without addresses; kNotSupported on a device that
  /// maps no memory as small as kGranule.
  Result<device::Address> reserve(const ipc::AddressReserve& wanted);
  /// The addresses go with the last mapping. kInvalidValue unless a reservation begins there in
  /// which nothing is mapped.
  Result<void> unreserve(device::Address address);

  /// Errors: kProtocol for an id that is 0 or taken; kInvalidValue, kLimit, kOutOfMemory.
  Result<void> create(std::uint64_t id, std::uint64_t bytes);
  /// First half of a release. Returns the memory for MemoryManager::finish_free(). kInvalidHandle.
  Result<device::Address> retire(std::uint64_t id);

  /// Whether something is mapped there, or was until it was unmapped.
  bool has_mapping(device::AddressRange range) const;
  /// Whether unmapped memory is there that work may still use.
  bool is_leaving(device::AddressRange range) const;
  /// Waits until finish_unmap() was called, or `timeout` has passed.
  void wait_for_unmap(std::chrono::milliseconds timeout);
  /// Shows all of allocation `id` at `range`. kInvalidHandle; kInvalidValue for addresses that are
  /// not reserved, or not free, or not as many as the allocation has; kLimit, kOutOfMemory.
  Result<void> map(device::AddressRange range, std::uint64_t id);
  /// First half of an unmap. Returns the mappings for finish_unmap(). kInvalidValue when the range
  /// has no mapping, or cuts one.
  Result<std::vector<device::Address>> retire_mappings(device::AddressRange range);
  /// Second half. Any thread. Requires: retired, and no unfinished work uses the mapping.
  void finish_unmap(device::Address mapping);

  /// The reservation with this address. Pointers into it lead anywhere in it.
  std::optional<device::AddressRange> reservation_of(device::Address address) const;
  /// Whether all of the bytes are mapped by the program.
  bool owns(device::Address address, std::uint64_t bytes) const;
  /// The mapped ranges that kernels reach, and `others`, by rising address; null for nothing.
  Ranges with(const Ranges& others);

  /// Gives everything back. Requires: no unfinished work uses it.
  void release();

 private:
  struct Reservation {
    std::uint64_t bytes = 0;
    std::size_t mappings = 0;
    bool freed = false;
  };
  struct Memory {
    device::Address home = 0;  // its address in the arena
    std::uint64_t bytes = 0;
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    device::Address home = 0;         // that of its memory
    device::Address reservation = 0;  // beginning of its reservation
    bool leaving = false;
  };
  using Mappings = std::map<device::Address, Mapping>;
  using Runs = std::map<device::Address, std::uint64_t>;

  std::vector<device::AddressRange> reachable() const;
  Mappings::const_iterator first_in(device::AddressRange range) const SLATE_REQUIRES(mutex_);
  void end_reservation(device::Address address) SLATE_REQUIRES(mutex_);
  void add_run(device::AddressRange range);
  void cut_run(device::AddressRange range);

  device::Device& device_;
  MemoryManager& memory_;
  std::unordered_map<std::uint64_t, Memory> memories_;
  Runs runs_;                         // mapped bytes without gaps: where they begin, and how many
  Ranges others_, merged_;            // the ranges that merged_ was made of, and merged_
  std::uint64_t merged_version_ = 0;  // MemoryManager::mapped_version() of merged_
  mutable Mutex mutex_;
  CondVar unmapped_;
  std::map<device::Address, Reservation> reservations_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t reserved_ SLATE_GUARDED_BY(mutex_) = 0;  // bytes
  Mappings mappings_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
