// AddressSpace: reserved ranges of device addresses and the physical memory behind them. It knows
// which handle backs which range. It does not know owners, which the engine does, and makes no
// copies (work.cc). Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class AddressSpace {
 public:
  /// Requires: `context` outlives it.
  static Result<std::unique_ptr<AddressSpace>> open(Context& context);
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  /// Gives back everything still mapped or reserved. Requires: no unfinished work touches it.
  ~AddressSpace();

  // As the methods of device::Device of the same names.
  std::uint64_t granularity() const { return granularity_; }
  /// As Device::reserve_at(); zeros: no wish.
  Result<device::Address> reserve(std::uint64_t bytes, std::uint64_t align = 0,
                                  device::Address wished = 0);
  void unreserve(device::AddressRange range);
  /// Returns when the new memory has been filled with zeros.
  Result<void> map(device::AddressRange range);
  Result<void> map_on_host(device::AddressRange range);
  Result<void> map_again(device::AddressRange range, device::Address mapped);
  Result<void> unmap(device::AddressRange range);
  Result<UniqueFd> export_memory(device::AddressRange range);
  Result<void> map_exported(device::AddressRange range, int memory);

 private:
  struct Mapping {
    std::uint64_t bytes;
    CUmemGenericAllocationHandle handle;  // same for all mappings of one memory
  };

  explicit AddressSpace(Context& context) : context_(context) {}

  CUmemAllocationProp properties() const;
  CUmemAllocationProp host_properties() const;
  Result<void> map_new(device::AddressRange range, const CUmemAllocationProp& properties);
  bool is_granular(device::AddressRange range) const;
  /// Maps the handle's memory at the range. `fresh`: also fills it with zeros, and waits for that.
  Result<void> back(device::AddressRange range, CUmemGenericAllocationHandle handle, bool fresh);
  Result<void> clear(device::AddressRange range);

  Context& context_;
  std::uint64_t granularity_ = 0;
  /// Stream that fills new memory, of the highest priority: no client's kernel delays it.
  CUstream stream_ = nullptr;

  Mutex mutex_;
  std::map<device::Address, Mapping> mapped_ SLATE_GUARDED_BY(mutex_);
  std::map<device::Address, std::uint64_t> reservations_ SLATE_GUARDED_BY(mutex_);  // bytes
};

}  // namespace slate::cuda
