// printf and assert in kernels, as functions of our own. The driver's print in the process that
// owns the context, which is not the program's, and a failed assertion ends the context of
// everybody. Those that with_builtins() links in write what they have to say into a ring of shared
// host memory, which the program itself reads and formats, and an assertion that failed ends its
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace slate::ptx {

/// The variable of 8 bytes that holds the address of the PrintRingHeader, 0 at first. With 0,
/// printf returns -2, and an assertion that fails is a trap.
inline constexpr std::string_view kPrintRingVariable = "__libslate_print_ring";

/// In host memory that kernels reach, before the ring's data. Positions are bytes written since the
/// beginning; position modulo the ring's size is the place, words do not cross its end. A record is
///   word 0: tag_of(its position), written last
///   word 1: its bytes, a multiple of 8, all words included; kAssertRecord besides
///   then, for printf, the format and each argument; for assert, AssertWords and three strings
/// where a number is one word and a string ends with a NUL, filled up to whole words. When the ring
/// is full the oldest records are overwritten, as CUDA documents it.
struct PrintRingHeader {
  std::uint64_t tail = 0;      // position behind the last record; writer: kernels
  std::uint64_t asserted = 0;  // assertions that failed; writer: kernels
  std::uint64_t mask = 0;      // the ring's bytes, a power of two, less 1; writer: host
  std::uint64_t reserved[5] = {};
};
static_assert(sizeof(PrintRingHeader) == 64 && offsetof(PrintRingHeader, asserted) == 8 &&
              offsetof(PrintRingHeader, mask) == 16);

inline constexpr std::uint64_t kAssertRecord = std::uint64_t{1} << 63;
inline constexpr std::uint64_t tag_of(std::uint64_t position) {
  return ~position;
}

/// Words of an assertion, before its message, file and function.
enum AssertWords { kLine, kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ, kAssertWords };

}  // namespace slate::ptx
