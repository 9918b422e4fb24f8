// KernelHeap: malloc and free of a session's kernels. Modules that call them get the address of a
// heap in this session's memory. injector/link/heap.h describes its layout. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "base/mutex.h"
#include "base/result.h"

namespace slate::client {

class Session;

class KernelHeap {
 public:
  explicit KernelHeap(Session& session) : session_(session) {}

  /// The size of the heap. Once kernels have used it, or beyond the largest size, another size is
  /// kInvalidValue; kOutOfMemory.
  std::uint64_t bytes();
  Result<void> set_bytes(std::uint64_t bytes);

  /// Makes the heap in this session's memory, unless there is one.
  Result<void> need();
  /// Writes the heap's address into a module. Requires: need().
  Result<void> connect(std::uint64_t module);
  void disconnect(std::uint64_t module);
  /// Raises the driver's heap, which all sessions share, if machine code calls the driver's malloc.
  void raise_drivers(std::span<const std::byte> code);

 private:
  Result<std::uint64_t> make(std::uint64_t bytes);

  static constexpr std::uint64_t kBytes = 8 << 20;  // as the driver of CUDA 13.0 has it

  Session& session_;
  Mutex mutex_;
  // Outside of the table, as it is not the program's; 0: no heap yet.
  std::uint64_t address_ SLATE_GUARDED_BY(mutex_) = 0;
  // By module: variable with the heap's address.
  std::map<std::uint64_t, std::uint64_t> variables_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t bytes_ SLATE_GUARDED_BY(mutex_) = kBytes;
};

}  // namespace slate::client
