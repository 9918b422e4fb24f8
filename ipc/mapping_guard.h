// MappingGuard: keeps a daemon process alive when a client cuts off the file behind memory that
// both have mapped. Touching such a page raises SIGBUS. A handler puts a page of zeros in its
// place, which the engine checks as everything that a client writes.
//
// The handler and its table belong to the process. For daemon processes only: a program's signals
// are its own. Guard only memory that a client can cut off: segments and files. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace slate::ipc {

class MappingGuard {
 public:
  MappingGuard() = default;
  /// Guards [base, base + bytes) until destruction, which must come before the unmapping. Requires
  /// whole pages. Errors: kLimit when there are kMost guards; then the memory must not be used.
  static Result<MappingGuard> make(void* base, std::size_t bytes);
  MappingGuard(MappingGuard&& other) noexcept : entry_(std::exchange(other.entry_, kNone)) {}
  MappingGuard& operator=(MappingGuard&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~MappingGuard();

  /// Guards of one process.
  static constexpr std::size_t kMost = 16384;

 private:
  static constexpr std::size_t kNone = kMost;
  explicit MappingGuard(std::size_t entry) : entry_(entry) {}
  std::size_t entry_ = kNone;
};

}  // namespace slate::ipc
