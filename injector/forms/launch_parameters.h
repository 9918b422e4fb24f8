// What the host tells a rewritten kernel: the struct appended to its parameters, and the control
// block in device memory that the workers of one launch share. The layout is read by generated PTX
// (worker.cc, slice.cc, profile.cc, block_index.cc) through offsetof; nothing else may depend on
// it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate::injector {

/// Divides any number below 2^31 by a fixed one, by a multiplication and a shift: n * magic >>
/// shift.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t magic = 1u << 31;
  std::uint32_t shift = 31;
};
/// Requires: 1 <= value < 2^31.
Divisor make_divisor(std::uint32_t value);

enum WorkerFlags : std::uint32_t {
  /// Joins the queue of a launch that is under way, and leaves if that has ended. The block does
  /// not count towards exit_target.
  kSupplementary = 1,
  /// The block's first task is its own number; the queue begins behind those. Only for kernels of
  /// independent blocks: the others count on the lowest unfinished block being under way.
  kStaticFirstTask = 2,
};

/// The user's grid and who works on it. Its blocks are numbered from 0, x fastest.
struct LaunchParameters {
  Divisor extent_x;  // blocks along x
  Divisor extent_y;
  std::uint32_t extent_z = 1;
  std::uint32_t first = 0;    // slice form: number of this launch's first block
  std::uint32_t blocks = 0;   // in all; below 2^31
  std::uint32_t last_sm = 0;  // worker form: SMs beyond it share its word

  // Worker form only. Tasks are numbered from 0 and hold size_0, then size_1, then size_2 blocks.
  std::uint64_t control = 0;  // device address of a ControlBlock
  std::uint64_t signal = 0;   // where the last worker to leave writes a Signal; 0: nowhere
  std::uint32_t tasks_0 = 0, size_0 = 1;
  std::uint32_t tasks_1 = 0, size_1 = 1;
  std::uint32_t first_1 = 0;         // first block of the tasks of size_1
  std::uint32_t first_2 = 0;         // first block of the tasks of size 1
  std::uint32_t tasks = 0;           // in all
  std::uint32_t flags = 0;           // WorkerFlags
  std::uint32_t queue_start = 0;     // with kStaticFirstTask, the blocks launched; else 0
  std::uint32_t prefetch_below = 0;  // blocks below it have the next task fetched while they run
  std::uint32_t exit_target = 0;     // workers' ends that make this launch's last one
  std::uint32_t generation = 0;      // of the control block, for this launch; even
};
static_assert(sizeof(LaunchParameters) == 104);
static_assert(offsetof(LaunchParameters, control) % 8 == 0);

/// In device memory, zero before its first use and, but for what counts on, again after every
/// launch that ran to its end: the last worker cleans it. Reused only by launches that come after
/// in stream order.
struct ControlBlock {
  static constexpr std::uint64_t kNextOffset = 0;  // u32: the queue, next task to be handed out
  static constexpr std::uint64_t kSignalOffset =
      64;  // a place for the Signal, not used by workers otherwise
  /// u64: workers' ends << 32 | generation, with kClosed once the launch has ended or retreated.
  static constexpr std::uint64_t kStateOffset = 128;
  /// u32: workers that have come, in all launches but those with kStaticFirstTask; never cleaned.
  static constexpr std::uint64_t kArrivedOffset = 192;
  static constexpr std::uint64_t kSmOffset = 256;  // u32 per SM: withheld << 16 | workers present
  static constexpr std::uint64_t bytes(std::uint32_t sm_count) {
    return (kSmOffset + 4 * std::uint64_t{sm_count} + 255) / 256 * 256;
  }
};
inline constexpr std::uint32_t kClosed = 1;
inline constexpr std::uint32_t kNextGeneration = 2;  // so much later
/// An SM word allows kMostWorkers - withheld workers: all at first, as the word is 0.
inline constexpr std::uint32_t kMostWorkers = 0xffff;
inline constexpr std::uint32_t workers_present(std::uint32_t sm_word) {
  return sm_word & 0xffff;
}

/// Written with a release at system scope by the last worker to leave.
enum Signal : std::uint32_t {
  kFinished = 1,   // all blocks have run, the control block is clean
  kRetreated = 2,  // no worker is left, but blocks are: launch again with a higher exit_target
};
/// generation << 32 | Signal.
inline constexpr std::uint64_t make_signal(std::uint32_t generation, Signal signal) {
  return std::uint64_t{generation} << 32 | signal;
}

/// What the profile form takes in place of LaunchParameters.
struct ProfileParameters {
  /// Device address of kProfileCopies times as many 8-byte counters as the form has, all zero.
  std::uint64_t counters = 0;
  /// A block counts if its number, scattered over 32 bits, is no greater.
  std::uint32_t sample = 0xffffffff;
  std::uint32_t unused = 0;
};
static_assert(sizeof(ProfileParameters) == 16);

/// Blocks add to one of so many sets of counters: all to one would wait for one another.
inline constexpr std::uint32_t kProfileCopies = 16;
/// Scatters block numbers: the golden ratio of 2^32, which spaces any first n of them evenly.
inline constexpr std::uint32_t kProfileScatter = 0x9e3779b9;
/// The `sample` with which about kSampledBlocks of `blocks` count, or all of up to 4/3 as many.
/// Block 0 always does.
inline constexpr std::uint64_t kSampledBlocks = 192;
std::uint32_t profile_sample(std::uint64_t blocks);

}  // namespace slate::injector
