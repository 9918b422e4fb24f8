// MappingGuard: keeps a daemon's process alive when a client cuts off the file behind memory that
// both have mapped. Touching such a page raises SIGBUS; a handler puts zeros in its place, which
// the engine then finds to be nonsense, as it does with everything else that a client may write.
//
// The handler and its table are the process's, as signals are. Daemon only: a program's signals are
// its own. For memory that a client can cut off: segments and files. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace slate::ipc {

class MappingGuard {
 public:
  MappingGuard() = default;
  /// Guards [base, base + bytes) until destruction, which has to come before the unmapping. kLimit
  /// when there are kMost guards: the memory is not to be used then. Requires: whole pages.
  static Result<MappingGuard> make(void* base, std::size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept : entry_(std::exchange(other.entry_, kNone)) {}
  MappingGuard& operator=(MappingGuard&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~MappingGuard();

  static constexpr std::size_t kMost = 16384;

 private:
  static constexpr std::size_t kNone = kMost;
  explicit MappingGuard(std::size_t entry) : entry_(entry) {}
  std::size_t entry_ = kNone;
};

}  // namespace slate::ipc
