// Printing: printf and assert of a session's kernels. Modules that use them get the address of a
// ring in host memory that both sides reach. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
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
  void unmap() SLATE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  Result<void> make_ring(std::uint64_t bytes) SLATE_REQUIRES(mutex_);

  static constexpr std::uint64_t kFifoBytes = 8650752;  // as the driver of CUDA 13.0 has it

  Session& session_;
  std::atomic<bool> exists_{false};  // ring_; read without the mutex
  Mutex mutex_;
  std::unique_ptr<PrintRing> ring_ SLATE_GUARDED_BY(mutex_);
  HostBlock block_ SLATE_GUARDED_BY(mutex_);
  // By module: variable with the ring's address.
  std::map<std::uint64_t, std::uint64_t> variables_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t fifo_bytes_ SLATE_GUARDED_BY(mutex_) = kFifoBytes;
};

}  // namespace slate::client
