// Slack: what lies before and behind a session's segments of device memory. Programs read a row
// before their first allocation, or one behind their last: natively there is mapped memory, here
// there would be none, and a fault ends every session of the device.
//
// All slack of a session is one granule of memory, its own, which reads as zero until the session
// writes there: mapped at many places, it costs the same. Not thread-safe.
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

  /// Of one place: the least that a device maps, 2 MiB on today's. Rows are shorter.
  std::uint64_t bytes() const { return bytes_; }
  /// Where there is some, by rising address.
  const std::set<device::Address>& places() const { return places_; }
  bool is_at(device::Address address) const { return places_.contains(address); }

  /// False when the device has no memory for it: then the place stays as it is. Requires: nothing
  /// is mapped there.
  bool put(device::Address address);
  // Require that no unfinished work touches it.
  /// But for the last place, which keeps the memory for the next one: new memory has to be cleared.
  void remove(device::Address address);
  void clear();

 private:
  void unmap(device::Address address);

  device::Device& device_;
  const std::uint64_t bytes_;
  std::set<device::Address> places_;
};

}  // namespace slate::daemon
