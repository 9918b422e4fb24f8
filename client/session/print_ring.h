// PrintRing: reads what kernels have printed out of the ring that injector/link/printing.h
// describes. Kernels may still be writing: incomplete records stay for a later call. So a call gets
// everything that ended work has printed. Records that kernels overwrote before they were read are
// lost. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "injector/link/printing.h"

namespace slate::client {

struct Printed {
  bool is_error = false;  // whether it is for stderr: a failed assertion
  std::string text;
};

class PrintRing {
 public:
  /// Bytes of memory for a ring with `bytes` of records: a multiple of 4096.
  static std::uint64_t memory_for(std::uint64_t bytes);

  /// Requires: `memory` has memory_for(`bytes`) zeros, and outlives the ring. Kernels get its
  /// address.
  PrintRing(std::byte* memory, std::uint64_t bytes);

  /// What was printed since the last call, in the kernels' order.
  std::vector<Printed> take();
  /// Whether a kernel has printed.
  bool used() const;
  /// Whether an assertion has failed.
  bool asserted() const;

 private:
  struct Range {
    std::uint64_t begin, end;  // positions
  };
  using Words = std::vector<std::uint64_t>;

  std::uint64_t tail() const;
  std::uint64_t* word_at(std::uint64_t position) const;
  std::optional<Words> record_at(std::uint64_t position, std::uint64_t end) const;
  void read(Range range, std::uint64_t oldest, std::vector<Printed>& printed)
      SLATE_REQUIRES(mutex_);

  ptx::PrintRingHeader* const header_;
  std::byte* const data_;
  const std::uint64_t bytes_;  // a power of two
  Mutex mutex_;
  std::uint64_t seen_ SLATE_GUARDED_BY(mutex_) = 0;  // the position up to which records were read
  // Earlier positions whose records were incomplete.
  std::vector<Range> unread_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
