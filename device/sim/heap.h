// DeviceHeap: what malloc() and free() in kernels draw from. The books are kept on the host, where
// a kernel cannot damage them. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "device/device.h"

namespace slate::sim {

class DeviceHeap {
 public:
  /// `range`: memory that the kernels may touch, for as long as the heap lives.
  explicit DeviceHeap(device::AddressRange range);
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  /// Aligned to 16 bytes; 0 when there is no room, or `bytes` is 0.
  device::Address allocate(std::uint64_t bytes);
  /// False when `address` was not allocated here.
  bool release(device::Address address);

 private:
  std::mutex mutex_;
  std::map<device::Address, std::uint64_t> free_;  // address -> bytes, neighbours merged
  std::unordered_map<device::Address, std::uint64_t> used_;
};

}  // namespace slate::sim
