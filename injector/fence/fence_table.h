// What the host and fenced kernels share: the constants of a fenced module, and the session's fence
// table in memory that the device can reach. Generated PTX (member_text.cc, check_text.cc,
// ending.cc) reads the layout; no other code may depend on it. Plain values. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate::injector {

/// Why a thread was ended. The values are in memory that host and device share: append only.
enum class Violation : std::uint32_t {
  kNone = 0,
  kRange = 1,       // an access outside all ranges that it may touch
  kMisaligned = 2,  // an access whose address is no multiple of its size
  kTrap = 3,        // `trap`
  kAssert = 4,      // a failed assert
  kBreakpoint = 5,  // `brkpt`
  kHandle = 6,      // a texture or surface that is not the session's
  kBranch = 7,      // a jump by an index beyond its table
  kBarrier = 8,     // a barrier with a number or a count of threads that there cannot be
  kWarp = 9,        // a matrix instruction in a warp that lacks lanes
};

/// Bytes at the end of the main extent that the fast path leaves to the exact one. An access that
/// begins in front of them may be that long.
inline constexpr std::uint64_t kFenceSlack = 4096;
inline constexpr std::size_t kFastHandles = 4;

/// Contents of the constant `__slate_fence` of a fenced module. The loader of the module writes it
/// before the first launch, and again only while no kernel of the module runs.
struct FenceConstants {
  /// The main extent: one range that is mapped as a whole, and stays so while kernels run. `size`
  /// is its bytes less kFenceSlack; 0: there is none.
  std::uint64_t low = 0;
  std::uint64_t size = 0;
  std::uint64_t table = 0;   // device address of the FenceTable, a multiple of 16
  std::uint64_t record = 0;  // address of the FenceRecord; 0: nothing is recorded
  std::uint32_t module = 0;  // number that the host gave the module, for the record
  std::uint32_t zero = 0;    // always; the assembler does not know that
  /// Texture and surface handles that are looked at first; each is in the table, too, or 0.
  std::uint64_t fast_handles[kFastHandles] = {};
  std::uint64_t end = 0;  // low + size; 0: there is none
};
static_assert(sizeof(FenceConstants) == 80);

/// Of a main extent; what else there is is not set.
constexpr FenceConstants constants_of_extent(std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t size = bytes > kFenceSlack ? bytes - kFenceSlack : 0;
  return {.low = base, .size = size, .end = size == 0 ? 0 : base + size};
}

/// A range of addresses, generic and global alike.
struct FenceRange {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FenceRange) == 16);

/// Whether an access of the record writes.
inline constexpr std::uint32_t kFenceWrites = 1;
/// Whether `block` of the record holds the block's number in x, counted along x first, then along y
/// and z. Else it holds its index.
inline constexpr std::uint32_t kFenceNumbered = 2;

/// The first violation. Writer: the thread that changed `state` from kFree, with a compare-and-swap
/// at system scope; it writes kComplete after all else, behind a fence of system scope. The host
/// polls `state`, reads the record, and writes kFree when no kernel of the session runs.
struct FenceRecord {
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kClaimed = 1;
  static constexpr std::uint32_t kComplete = 2;

  std::uint32_t state = kFree;
  std::uint32_t kind = 0;      // a Violation
  std::uint32_t module = 0;    // FenceConstants::module
  std::uint32_t function = 0;  // index into FencedModule::functions
  std::uint32_t line = 0;      // line of the instruction in the text that was fenced
  std::uint32_t bytes = 0;     // bytes of the access; 0: no access
  std::uint32_t flags = 0;     // kFenceWrites, kFenceNumbered
  std::uint32_t unused = 0;
  std::uint64_t address = 0;  // address, or handle, or index of the jump
  std::uint32_t block[3] = {};
  std::uint32_t thread[3] = {};
};
static_assert(sizeof(FenceRecord) == 64);

/// The table of one session. Writer: the host, but for `ended`. Kernels read it whenever the fast
/// path does not let an access pass, without any order among the words. So:
/// - An entry is complete before a count includes it.
/// - An entry that goes away gets `bytes` 0, or handle 0, and is used again only when all kernels
///   that could have read it have ended.
struct FenceTable {
  static constexpr std::size_t kMostRanges = 4096;
  static constexpr std::size_t kMostHandles = 1024;

  std::uint32_t range_count = 0;  // ranges that kernels may read and write
  std::uint32_t handles = 0;      // number of texture and surface handles
  /// Not 0: a violation was recorded, and threads that may wait for others end. Writer: the thread
  /// that wrote the record, behind it and a fence of system scope. The host writes 0 before the
  /// session's first kernel, and never again.
  std::uint32_t ended = 0;
  /// Not 0: a thread has violated the fence. Writer: the first one, before it claims the record.
  /// The host writes 0 before the session's first kernel.
  std::uint32_t ending = 0;
  std::uint32_t unused[4] = {};
  FenceRange ranges[kMostRanges];
  std::uint64_t handle[kMostHandles] = {};
};
static_assert(offsetof(FenceTable, range_count) == 0);
static_assert(offsetof(FenceTable, handles) == 4);
static_assert(offsetof(FenceTable, ended) == 8);
static_assert(offsetof(FenceTable, ranges) == 32);
static_assert(sizeof(FenceTable) == 32 + 16 * 4096 + 8 * 1024);

}  // namespace slate::injector
