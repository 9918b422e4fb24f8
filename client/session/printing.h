// Printing: printf and assert of a session's kernels. Modules that use them get the address of a
// ring in host memory that both sides reach. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "client/session/host_blocks.h"
#include "client/session/print_ring.h"

namespace slate::client {

class Session;

class Printing {
 public:
  explicit Printing(Session& session) : session_(session) {}

  /// What kernels have printed since the last call.
  std::vector<Printed> take();
  /// Writes take()'s text to stdout, and failed assertions to stderr. Every call that waits for the
  /// device does this.
  void write();
  /// The size of the ring. Once a kernel has printed, another size is kInvalidValue.
  std::uint64_t fifo_bytes();
  Result<void> set_fifo_bytes(std::uint64_t bytes);

  /// Writes the ring's address into a module; the first call makes the ring.
  Result<void> connect(std::uint64_t module);
  void disconnect(std::uint64_t module);
  /// kAssert when an assertion has failed, which ends the session, as it ends a context of CUDA.
  /// One atomic load while no module has a ring.
  Result<void> look_for_assertions();
  /// Unmaps the ring. Requires: the session is over, and no thread is inside it.
  void unmap();

 private:
  Result<void> make_ring(std::uint64_t bytes);

  static constexpr std::uint64_t kFifoBytes = 8650752;  // as the driver of CUDA 13.0 has it

  Session& session_;
  std::atomic<bool> exists_{false};  // ring_; read without the mutex
  std::mutex mutex_;                 // guards all below
  std::unique_ptr<PrintRing> ring_;
  HostBlock block_;
  std::map<std::uint64_t, std::uint64_t> variables_;  // by module: variable with the ring's address
  std::uint64_t fifo_bytes_ = kFifoBytes;
};

}  // namespace slate::client
