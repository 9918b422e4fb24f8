// AddressSpace: reserved ranges of device addresses and the physical memory behind them. Knows
// which handle backs which range; not who owns what (the engine does), and not the copies
// (work.cc). Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"
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

  // As in device::Device.
  std::uint64_t granularity() const { return granularity_; }
  Result<device::Address> reserve(std::uint64_t bytes);
  void unreserve(device::AddressRange range);
  /// Waits until the new memory has been filled with zeros.
  Result<void> map(device::AddressRange range);
  Result<void> map_again(device::AddressRange range, device::Address mapped);
  Result<void> unmap(device::AddressRange range);

 private:
  struct Mapping {
    std::uint64_t bytes;
    CUmemGenericAllocationHandle handle;  // of all mappings of the same memory
  };

  explicit AddressSpace(Context& context) : context_(context) {}

  CUmemAllocationProp properties() const;
  bool is_granular(device::AddressRange range) const;
  Result<void> back(device::AddressRange range, CUmemGenericAllocationHandle handle, bool fresh);
  Result<void> clear(device::AddressRange range);

  Context& context_;
  std::uint64_t granularity_ = 0;
  CUstream stream_ =
      nullptr;  // fills new memory; of the highest priority, so that no client's kernel delays it

  std::mutex mutex_;
  std::map<device::Address, Mapping> mapped_;              // guarded by mutex_
  std::map<device::Address, std::uint64_t> reservations_;  // bytes; guarded by mutex_
};

}  // namespace slate::cuda
