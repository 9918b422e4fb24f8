// HostGates: places in a session's streams where the device waits for the client, so that the
// client can run a host function there (cudaLaunchHostFunc). A gate is a word of host memory of
// the engine's own, out of the client's reach, that the stream waits for; opening it writes the
// word, without a call of the driver: one that loads a module meanwhile may wait for the very
// stream. Nothing here waits.
//
// Session thread, except passed().
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

class HostGates {
 public:
  explicit HostGates(device::Device& device) : device_(device) {}
  /// Requires: release() was called.
  ~HostGates();
  HostGates(const HostGates&) = delete;
  HostGates& operator=(const HostGates&) = delete;

  /// Makes later work of `stream` wait until open(ticket). Returns the gate's number, for passed().
  /// kProtocol for a ticket that is closed already, kLimit when no gate is left, or the device's
  /// error.
  Result<std::uint32_t> close(device::Stream stream, std::uint64_t ticket);
  /// kInvalidHandle for a ticket that is not closed.
  Result<void> open(std::uint64_t ticket);
  /// The client runs no more functions: lets all streams go on.
  void open_all();
  /// The stream is past the gate, which may be used again. Any thread.
  void passed(std::uint32_t gate);
  /// Gives everything back. Requires: no unfinished work waits.
  void release();

 private:
  Result<void> prepare();
  device::Address word_of(std::uint32_t gate) const { return words_.base + gate * kWordBytes; }

  static constexpr std::uint64_t kWordBytes = 8;
  device::Device& device_;
  device::AddressRange words_{};
  std::unordered_map<std::uint64_t, std::uint32_t> closed_;  // gate by ticket
  std::vector<std::uint64_t> values_;                        // of the word that opens the gate
  std::mutex mutex_;                                         // guards free_
  std::vector<std::uint32_t> free_;
};

}  // namespace slate::daemon
