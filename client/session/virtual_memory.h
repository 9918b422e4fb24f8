// VirtualMemory: addresses and memory apart (cuMemAddressReserve, cuMemCreate, cuMemMap). It counts
// the handles of physical allocations, and knows what is mapped where. Mapped ranges are in the
// table of DeviceMemory, where mappings side by side are one range. Thread-safe.
//
// Memory can be read and written from its mapping on. What set_access() says is only kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "ipc/commands.h"

namespace slate::client {

class Session;

/// What a program says of a physical allocation when it makes it, as the front has it.
struct AllocationProperties {
  std::uint32_t type = 0;
  std::uint32_t handle_types = 0;
  std::uint32_t location_type = 0;
  std::int32_t location = 0;
  std::uint32_t compression = 0;
  std::uint32_t rdma = 0;
  std::uint32_t usage = 0;
  bool operator==(const AllocationProperties&) const = default;
};

/// A mapping of a physical allocation.
struct Mapping {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t handle = 0;
  std::uint32_t access = 0;  // as set_access() has it; 0: not set yet
};

class VirtualMemory {
 public:
  /// Sizes are multiples of this, and so are places in a reservation.
  static constexpr std::uint64_t kGranule = ipc::kVirtualGranule;

  explicit VirtualMemory(Session& session) : session_(session) {}

  /// Reserves addresses, at a multiple of `align` (0: of kGranule), and at `wished` if that is
  /// free. kInvalidValue, kOutOfMemory.
  Result<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t align, std::uint64_t wished);
  /// kInvalidValue unless it is a whole reservation in which nothing is mapped.
  Result<void> free_reservation(std::uint64_t address, std::uint64_t bytes);
  struct Reservation {
    std::uint64_t address, bytes;
  };
  /// The reservation that has the address.
  std::optional<Reservation> reservation_at(std::uint64_t address) const;
  /// Whether the bytes lie in one reservation.
  bool is_reserved(std::uint64_t address, std::uint64_t bytes) const;

  /// Makes a physical allocation that reads as zero; returns its handle, which is held once.
  /// kInvalidValue, kOutOfMemory.
  Result<std::uint64_t> create(std::uint64_t bytes, const AllocationProperties& properties);
  /// Lets go of the handle once. The memory stays as long as it is mapped. kInvalidValue for what
  /// is no handle.
  Result<void> release(std::uint64_t handle);
  /// The handle of the memory that is mapped at the address, which is then held once more.
  Result<std::uint64_t> retain(std::uint64_t address);
  Result<AllocationProperties> properties(std::uint64_t handle) const;
  /// Those of what is mapped at the address, whether or not its handle is held.
  std::optional<AllocationProperties> properties_at(std::uint64_t address) const;

  /// Maps a whole allocation. kInvalidValue also for addresses that are not reserved or not free.
  Result<void> map(std::uint64_t address, std::uint64_t bytes, std::uint64_t offset,
                   std::uint64_t handle);
  /// Unmaps all mappings in the range, behind all work that was sent before. kInvalidValue when
  /// there is none, or the range cuts one.
  Result<void> unmap(std::uint64_t address, std::uint64_t bytes);

  /// Keeps the flags (CUmemAccess_flags) of what is mapped there. kInvalidValue unless the range is
  /// mapped without gaps, and cuts no mapping.
  Result<void> set_access(std::uint64_t address, std::uint64_t bytes, std::uint32_t access);
  /// kInvalidValue where nothing is mapped.
  Result<std::uint32_t> access(std::uint64_t address) const;
  std::optional<Mapping> mapping_at(std::uint64_t address) const;

 private:
  struct Allocation {
    std::uint64_t bytes = 0;
    AllocationProperties properties;
    std::uint64_t held = 0;      // how often the program holds the handle
    std::uint64_t mappings = 0;  // the daemon is told of the end when both are 0
  };
  using Mappings = std::map<std::uint64_t, Mapping>;  // by address

  Result<void> end_if_unused(std::uint64_t handle) SLATE_REQUIRES(mutex_);
  bool has_mapping(std::uint64_t address, std::uint64_t bytes) const SLATE_REQUIRES(mutex_);
  bool in_reservation(std::uint64_t address, std::uint64_t bytes) const SLATE_REQUIRES(mutex_);
  Result<std::vector<std::uint64_t>> whole_mappings(std::uint64_t address,
                                                    std::uint64_t bytes) const
      SLATE_REQUIRES(mutex_);

  Session& session_;
  mutable Mutex mutex_;  // keeps the order of the commands that it sends
  std::map<std::uint64_t, std::uint64_t> reservations_ SLATE_GUARDED_BY(mutex_);  // bytes
  std::map<std::uint64_t, Allocation> allocations_ SLATE_GUARDED_BY(mutex_);      // by handle
  Mappings mappings_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
