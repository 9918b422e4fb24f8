// Moves: copies between the device and the host on a stream apart from those of sessions. What is
// to be done behind a copy is done once it has ended, or failed, while the next one runs. Thread:
// one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "base/copy.h"
#include "base/result.h"
#include "device/device.h"

namespace slate::daemon {

class Moves {
 public:
  /// `device` outlives it.
  explicit Moves(device::Device& device) : device_(device) {}
  /// Requires: finish() was called behind the last begin().
  ~Moves();
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  /// Hears once how a copy ended that has begun. After kUnavailable it may still be under way.
  /// Returns the error of the copy, if it has one.
  using Then = std::function<Result<void>(Result<void> copied)>;
  /// Begins a copy, behind those before, and lets at most one other be under way. Where this
  /// returns an error, `then` hears nothing. Errors: those of the device, also of copies before;
  /// those of their `then`.
  Result<void> begin(const Place& to, const Place& from, std::uint64_t bytes, Then then);
  /// Waits for all copies. Errors: as above; kUnavailable when the device does not answer for 10 s.
  Result<void> finish();

 private:
  struct UnderWay {
    device::Event event;
    Then then;
  };

  Result<void> open();
  Result<void> end_first();

  device::Device& device_;
  device::Stream stream_{};  // 0: not made yet
  std::deque<UnderWay> under_way_;
};

}  // namespace slate::daemon
