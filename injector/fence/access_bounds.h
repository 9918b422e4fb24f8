// AccessBounds: what has to hold for a launch so that some of a kernel's accesses need no check. It
// is a list of steps, which compute intervals from the launch's own values, and of claims about
// them. The host carries it out in front of each launch (BoundAnswers). It errs only towards "no".
// Plain data and pure functions. Thread: any.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "injector/fence/fence_table.h"

namespace slate::injector {

/// Ends the name of the copy of a kernel that has no checks for what its bounds show.
inline constexpr char kBoundedSuffix[] = "__slate_bounded";

/// How a step makes its interval from those of the steps `a`, `b` and `c`. An interval stands for
/// the values of all threads. A register holds some number of it but for multiples of 2^width.
enum class BoundOp : std::uint8_t {
  kAny,        // everything
  kNumber,     // `value`
  kParameter,  // `bits` bits at byte `value` of the parameters, without a sign
  kThreads,    // the block's threads along axis `value`
  kBlocks,     // the grid's blocks along axis `value`
  kShared,     // the launch's bytes of dynamic shared memory
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRest,
  kShiftRight,  // a by `value` bits
  kAnd,
  kOr,  // and exclusive or
  kMin,
  kMax,
  kEither,
  kIndex,   // from 0 on, below a
  kRead,    // a as a number of `bits` bits with or without a sign
  kAtMost,  // a, as kRead, where it is at most b + `value`
  kAtLeast,
  kRising,  // a register that begins as a, grows by c, and is at most b when it has grown
  kFalling,
  kCounted,  // a register that begins as a and changes by `value` until it is b
  kTurns,    // how often c can be added to a until it is b, from 0 on
  kUnequal,  // a, as kRead, where it is not b
  kTied,     // a + `value` * c. b holds all that the register of c can be. Only if neither wraps
  kWhere,    // a, where some thread comes for which b is
  kWithin,   // b if a is within the numbers of the step's type, else a
  kRounded,  // a, whose lowest `value` bits are 0
  kCloser,   // b, if that is among the numbers of a, and none of these is another one's register
  kElse,     // a, or b if nothing is known of a
  /// A register that is one of c when a loop begins, and one of b at the end of each turn that
  /// began with one of a. a: it stays one of these.
  kInvariant,
};

struct BoundStep {
  BoundOp op = BoundOp::kAny;
  std::uint8_t bits = 64;
  bool is_signed = true;
  std::uint32_t a = 0, b = 0, c = 0;  // earlier steps
  std::int64_t value = 0;

  auto operator<=>(const BoundStep&) const = default;
};

struct BoundClaim {
  /// kInExtent: `bytes` bytes from the address `step` on lie in the main extent. kInVariable: from
  /// the offset `step` on, in a variable of `limit` bytes. kAligned: the address in the parameters
  /// at byte `limit` is a multiple of `bytes`. kMultiple: `step` is.
  enum class Kind : std::uint8_t { kInExtent, kInVariable, kAligned, kMultiple };
  Kind kind = Kind::kInExtent;
  std::uint32_t step = 0;
  std::uint32_t bytes = 0;
  std::uint64_t limit = 0;
  bool operator==(const BoundClaim&) const = default;
};

/// How many elements a pointer among the parameters has up to the end of the main extent. 0: it
/// does not lead there, or is misaligned. A few of the last ones may be left out. Or the least of
/// several such limits.
struct PassedLimit {
  std::vector<std::uint32_t> least_of{};  // numbers of earlier limits; empty: it is a pointer's
  std::uint32_t parameter = 0;            // byte of the pointer among the parameters
  std::int64_t offset = 0;                // bytes from the pointer to the first element
  std::uint32_t shift = 0;                // binary logarithm of an element's bytes
  bool is_signed = false;                 // whether indices are signed
  std::uint32_t mask = 0;                 // last bits of the pointer that must be 0
};

/// What a launch of a bounded copy passes behind the kernel's own parameters: 32 bits a limit.
struct PassedLimits {
  static constexpr std::uint64_t kMostBytes = 4096;  // of the parameters with the limits

  std::uint32_t at = 0;  // byte among the parameters, a multiple of 4
  std::vector<PassedLimit> limits{};
};

struct AccessBounds {
  std::vector<BoundStep> steps;
  std::vector<BoundClaim> claims;  // none: no access needs fewer checks
  /// Rows of the table of variables, rising: constants of which the copy has its own
  /// (own_constants.h). What is in them has to be what is in the program's.
  std::vector<std::uint32_t> constants{};
  PassedLimits passed{};
};

/// What the host knows of a launch.
struct LaunchValues {
  std::span<const std::byte> parameters{};
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;  // of dynamic shared memory
  /// The main extent.
  std::uint64_t low = 0;
  std::uint64_t bytes = 0;
};

/// Whether all claims hold. Of bounds that contradict themselves none does.
bool hold(const AccessBounds& bounds, const LaunchValues& launch);

/// The most that the limit of signed indices is: no neighbour of an index below it wraps.
inline constexpr std::uint32_t kMostSigned = 0x7fffffff - static_cast<std::uint32_t>(kFenceSlack);
/// The parameters with which the copy is launched. `buffer`: where they are if there are limits.
std::span<const std::byte> passed_parameters(const PassedLimits& passed, const LaunchValues& launch,
                                             std::vector<std::byte>& buffer);

}  // namespace slate::injector
