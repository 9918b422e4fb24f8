// printf and assert in kernels, as functions of our own. The driver's printf prints in the process
// that owns the context, which is not the program's, and its assert ends the context of all
// programs. Our functions, which with_builtins() links in, write records into a ring of shared host
// memory. The program reads and formats them. An assertion that failed ends its thread. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace slate::ptx {

/// The variable of 8 bytes that holds the address of the PrintRingHeader, 0 at first. With 0,
/// printf returns -2, and an assertion that fails is a trap.
inline constexpr std::string_view kPrintRingVariable = "__libslate_print_ring";

/// In host memory that kernels reach, before the ring's data. Positions are bytes written since the
/// beginning; position modulo the ring's size is the place. When the ring is full the oldest
/// records are overwritten, as CUDA documents. A record consists of
/// - word 0: tag_of(its position), written last;
/// - word 1: its bytes, a multiple of 8, all words included, and kAssertRecord for an assertion;
/// - for printf the format and each argument; for assert AssertWords and three strings.
/// A number is one word. A string ends with a NUL, filled up to whole words. Words do not cross the
/// ring's end.
struct PrintRingHeader {
  std::uint64_t tail = 0;      // position behind the last record; writer: kernels
  std::uint64_t asserted = 0;  // number of failed assertions; writer: kernels
  std::uint64_t mask = 0;      // bytes of the ring, a power of two, minus 1; writer: host
  std::uint64_t reserved[5] = {};
};
static_assert(sizeof(PrintRingHeader) == 64 && offsetof(PrintRingHeader, asserted) == 8 &&
              offsetof(PrintRingHeader, mask) == 16);

inline constexpr std::uint64_t kAssertRecord = std::uint64_t{1} << 63;
/// The word that marks the record at `position` as written.
inline constexpr std::uint64_t tag_of(std::uint64_t position) {
  return ~position;
}

/// Words of an assertion, before its message, file and function.
enum AssertWords { kLine, kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ, kAssertWords };

}  // namespace slate::ptx
