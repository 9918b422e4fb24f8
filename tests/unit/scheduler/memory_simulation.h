// Programs with more memory than the device, on a virtual clock: what decide_memory() makes of them
// as the engine carries it out. Only for tests.
//
// | simulated | as |
// | --- | --- |
// | what is missing, the working set, moves by pieces, clean pieces | SegmentBacking |
// | who is asked to leave | Residency |
// | waits, turns, rates of moves | MemoryWait and ExchangeRates, which the engine uses, too |
// | kernels that run at once | each gets the same part of the device |
// | moves | the sessions share each way of the link |
//
// Host memory is there in time. The engine's moves take longer by what maps and unmaps memory.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/memory_turns.h"
#include "scheduler/memory_wait.h"

namespace slate::scheduler {

/// A program that fills its buffers, rewrites each of them in every round by means of its
/// neighbour, and checks them in the end. Requires: an even number of buffers.
struct SimulatedProgram {
  double start_ms = 0;   // when its session begins
  double malloc_ms = 5;  // for each buffer
  int buffers = 4;
  std::uint64_t buffer_bytes = 0;
  int rounds = 40;
  double kernel_ms = 0;  // of one buffer, alone; a round has one for each
  double gap_ms = 0;     // pause on the host after each round
};

struct SimulatedDevice {
  std::uint64_t capacity = 24ull << 30;
  std::uint64_t piece = 256ull << 20;
  // Bytes a millisecond of the link.
  double out = 50e6, in = 50e6, in_beside_out = 35e6;
  double overhead = 0.05;
};

struct SimulatedRun {
  bool all_ended = false;
  double ms = 0;                 // until the last program has ended
  double longest_wait_ms = 0;    // of one command
  std::uint64_t copied_out = 0;  // bytes
};

/// Runs them until all have ended, at most for `most_ms`.
SimulatedRun simulate_memory(const std::vector<SimulatedProgram>& programs,
                             const SimulatedDevice& device, double most_ms = 300'000);

}  // namespace slate::scheduler
