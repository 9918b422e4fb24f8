// PrintRing: what kernels have printed, read out of the ring that injector/link/printing.h
// describes. Kernels may still be writing: what is not whole yet stays for a later call, so that a
// call gets everything that was printed by work which has ended. What kernels overwrote before it
// was read is lost. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "injector/link/printing.h"

namespace slate::client {

struct Printed {
  bool is_error = false;  // for stderr: an assertion that failed
  std::string text;
};

class PrintRing {
 public:
  /// Bytes of memory that a ring for `bytes` of records takes: a multiple of 4096.
  static std::uint64_t memory_for(std::uint64_t bytes);

  /// `memory`: so many zeros, which outlive it; kernels get the address of them.
  PrintRing(std::byte* memory, std::uint64_t bytes);

  /// What was printed since the last call, in the order in which kernels printed it.
  std::vector<Printed> take();
  /// True once a kernel has printed.
  bool used() const;
  /// True once an assertion failed.
  bool asserted() const;

 private:
  struct Range {
    std::uint64_t begin, end;  // positions
  };
  using Words = std::vector<std::uint64_t>;

  std::uint64_t tail() const;
  std::uint64_t* word_at(std::uint64_t position) const;
  std::optional<Words> record_at(std::uint64_t position, std::uint64_t end) const;
  void read(Range range, std::uint64_t oldest, std::vector<Printed>& printed);

  ptx::PrintRingHeader* const header_;
  std::byte* const data_;
  const std::uint64_t bytes_;  // a power of two
  std::mutex mutex_;           // guards what follows
  std::uint64_t seen_ = 0;     // positions before it were looked at
  std::vector<Range> unread_;  // and these were not whole
};

}  // namespace slate::client
