// Slack: mapped memory before and behind a session's segments of device memory. Programs read a row
// before their first allocation, or one behind their last. Natively there is mapped memory. Without
// slack such a read would fault, and a fault ends every session of the device.
//
// All slack of a session is one granule of memory, mapped at many places at the cost of one. It
// reads as zero until the session writes there. Not thread-safe.
#pragma once

#include <cstdint>
#include <set>

#include "device/device.h"

namespace slate::daemon {

class Slack {
 public:
  explicit Slack(device::Device& device) : device_(device), bytes_(device.granularity()) {}
  Slack(const Slack&) = delete;
  Slack& operator=(const Slack&) = delete;
  /// Requires: clear() was called, or nothing was put.
  ~Slack();

  /// Bytes at one place: the least that a device maps, 2 MiB on an H200. Rows are shorter.
  std::uint64_t bytes() const { return bytes_; }
  /// Addresses of the slack, rising.
  const std::set<device::Address>& places() const { return places_; }
  bool is_at(device::Address address) const { return places_.contains(address); }

  /// Maps slack at `address`; false when the device has no memory for it. Requires: nothing is
  /// mapped there.
  bool put(device::Address address);
  // Both require that no unfinished work uses the slack.
  /// Unmaps one place. The last one keeps the memory for the next place, as new memory has to be
  /// cleared.
  void remove(device::Address address);
  void clear();

 private:
  void unmap(device::Address address);

  device::Device& device_;
  const std::uint64_t bytes_;
  std::set<device::Address> places_;
};

}  // namespace slate::daemon
