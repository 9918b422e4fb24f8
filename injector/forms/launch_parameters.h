// What the host tells a rewritten kernel: the struct appended to its parameters, and the control
// block in device memory that the workers of one launch share. Generated PTX (worker.cc, slice.cc,
// profile.cc, block_index.cc) reads the layout through offsetof; no other code may depend on it.
// Plain values. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slate::injector {

/// Divides any number below 2^31 by a fixed one, with a multiplication and a shift: n * magic >>
/// shift.
struct Divisor {
  std::uint32_t value = 1;
  std::uint32_t magic = 1u << 31;
  std::uint32_t shift = 31;
};
/// Requires: 1 <= value < 2^31.
Divisor make_divisor(std::uint32_t value);

enum WorkerFlags : std::uint32_t {
  /// The worker joins the queue of a launch that is under way, and leaves if that has ended. The
  /// block does not count towards exit_target.
  kSupplementary = 1,
  /// The block's first task is its own number; the queue begins behind those. Only for kernels of
  /// independent blocks: others count on the lowest unfinished block being under way.
  kStaticFirstTask = 2,
};

/// The program's grid and the blocks that work on it. Its blocks are numbered from 0, x fastest.
struct LaunchParameters {
  Divisor extent_x;  // blocks along x
  Divisor extent_y;
  std::uint32_t extent_z = 1;
  std::uint32_t first = 0;    // slice form: number of this launch's first block
  std::uint32_t blocks = 0;   // all blocks; below 2^31
  std::uint32_t last_sm = 0;  // worker form: SMs beyond it share its word

  // Worker form only. Tasks are numbered from 0 and hold size_0, then size_1, then size_2 blocks.
  std::uint64_t control = 0;  // device address of a ControlBlock
  std::uint64_t signal = 0;   // address to which the last worker to leave writes a Signal; 0: none
  std::uint32_t tasks_0 = 0, size_0 = 1;
  std::uint32_t tasks_1 = 0, size_1 = 1;
  std::uint32_t first_1 = 0;      // first block of the tasks of size_1
  std::uint32_t first_2 = 0;      // first block of the tasks of size 1
  std::uint32_t tasks = 0;        // number of all tasks
  std::uint32_t flags = 0;        // WorkerFlags
  std::uint32_t queue_start = 0;  // with kStaticFirstTask the blocks launched; else 0
  /// A worker at a block below it fetches the next task while the block runs.
  std::uint32_t prefetch_below = 0;
  std::uint32_t exit_target = 0;  // ends of workers that make this launch's last one
  std::uint32_t generation = 0;   // generation of the control block for this launch; even
};
static_assert(sizeof(LaunchParameters) == 104);
static_assert(offsetof(LaunchParameters, control) % 8 == 0);

/// In device memory. It is zero before its first use, and again after every launch that ran to its
/// end, except for words that count on: the last worker cleans it. Reused only by launches that
/// come later in stream order. Writers: the workers, and the host for the withheld halves of SM
/// words.
struct ControlBlock {
  static constexpr std::uint64_t kNextOffset = 0;  // u32: the queue: next task to be handed out
  /// A place for the Signal, which workers do not use otherwise.
  static constexpr std::uint64_t kSignalOffset = 64;
  /// u64: workers' ends << 32 | generation, with kClosed once the launch has ended or retreated.
  static constexpr std::uint64_t kStateOffset = 128;
  /// u32: workers that have come, in all launches except those with kStaticFirstTask; never
  /// cleaned.
  static constexpr std::uint64_t kArrivedOffset = 192;
  /// u32 for each SM: withheld << 16 | workers present.
  static constexpr std::uint64_t kSmOffset = 256;
  static constexpr std::uint64_t bytes(std::uint32_t sm_count) {
    return (kSmOffset + 4 * std::uint64_t{sm_count} + 255) / 256 * 256;
  }
};
inline constexpr std::uint32_t kClosed = 1;
inline constexpr std::uint32_t kNextGeneration = 2;  // difference to the next launch's generation
/// Most workers of an SM. Its word allows kMostWorkers - withheld: all at first, as the word is 0.
inline constexpr std::uint32_t kMostWorkers = 0xffff;
inline constexpr std::uint32_t workers_present(std::uint32_t sm_word) {
  return sm_word & 0xffff;
}

/// How a launch of workers ended. Written with a release at system scope by the last worker to
/// leave.
enum Signal : std::uint32_t {
  kFinished = 1,   // all blocks have run, and the control block is clean
  kRetreated = 2,  // no worker is left, but blocks are: launch again with a higher exit_target
};
/// The word that is written: generation << 32 | Signal.
inline constexpr std::uint64_t make_signal(std::uint32_t generation, Signal signal) {
  return std::uint64_t{generation} << 32 | signal;
}

/// Parameters of the profile form, in place of LaunchParameters.
struct ProfileParameters {
  /// Device address of kProfileCopies times as many 8-byte counters as the form has, all zero.
  std::uint64_t counters = 0;
  /// A block is counted if its number, scattered over 32 bits, is at most this.
  std::uint32_t sample = 0xffffffff;
  std::uint32_t unused = 0;
};
static_assert(sizeof(ProfileParameters) == 16);

/// Sets of counters: blocks that all add to one set would wait for one another.
inline constexpr std::uint32_t kProfileCopies = 16;
/// Factor that scatters block numbers: the golden ratio of 2^32, which spaces any first n of them
/// evenly.
inline constexpr std::uint32_t kProfileScatter = 0x9e3779b9;
/// Blocks that profile_sample() aims at.
inline constexpr std::uint64_t kSampledBlocks = 192;
/// The `sample` with which about kSampledBlocks of `blocks` are counted, or all blocks if they are
/// at most 4/3 as many. Block 0 is always counted.
std::uint32_t profile_sample(std::uint64_t blocks);

}  // namespace slate::injector
