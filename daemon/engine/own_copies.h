// OwnCopies: copies of the engine's own, on a stream apart from those of its sessions. Thread: one
// at a time.
#pragma once

#include <cstdint>

#include "base/copy.h"
#include "base/result.h"
#include "device/device.h"

namespace slate::daemon {

/// Waits until the work before the event's last record() has ended. Errors: those of the device;
/// kUnavailable when it does not answer for 10 s.
Result<void> wait_until_reached(device::Device& device, device::Event event);

class OwnCopies {
 public:
  /// `device` outlives it.
  explicit OwnCopies(device::Device& device) : device_(device) {}
  ~OwnCopies();
  OwnCopies(const OwnCopies&) = delete;
  OwnCopies& operator=(const OwnCopies&) = delete;

  /// Begins a copy of so many bytes, behind those before. Host memory is read or written until
  /// finish(). Errors: those of the device.
  Result<void> begin(const Place& to, const Place& from, std::uint64_t bytes);
  /// Waits until all copies are there. Errors: those of the device; kUnavailable when it does not
  /// answer for 10 s.
  Result<void> finish();

 private:
  Result<void> open();

  device::Device& device_;
  device::Stream stream_{};  // 0: not made yet
  device::Event event_{};
};

}  // namespace slate::daemon
