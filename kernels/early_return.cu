// Threads that leave early, at a round that their data decides, while the others go on through
// barriers. The hardware counts a thread that has exited no longer, so this is well defined;
// whoever turns blocks into loop iterations has to preserve it. Integers, exact.
//
// A cell with a lifetime of L takes part in L rounds. In round r it adds the cell at distance 2^r
// (within its block, cyclically) to a multiple of itself; a neighbour that has left counts with its
// last value.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kRounds = 8;
constexpr unsigned kFactor = 2654435761u;

}  // namespace

__global__ void early_return(const unsigned* __restrict__ values,
                             const unsigned char* __restrict__ lifetimes,
                             unsigned* __restrict__ results, unsigned count) {
  __shared__ unsigned cells[kThreads];
  const unsigned t = threadIdx.x;
  const unsigned base = blockIdx.x * kThreads;
  if (base + t >= count) return;
  const unsigned lifetime = lifetimes[base + t];
  unsigned value = values[base + t];
  if (lifetime == 0) {
    results[base + t] = ~value;
    return;
  }
  cells[t] = value;
  __syncthreads();
  // The trip count is the same for all: a thread leaves by exiting, never by ending the loop
  // sooner, so those that remain in a warp always meet at the same barrier instruction.
  for (unsigned round = 0; round < kRounds; ++round) {
    if (round == lifetime) {
      results[base + t] = value;
      return;
    }
    const unsigned other = (t + (1u << round)) % kThreads;
    // Cells that left before the first barrier have put nothing into shared memory.
    const bool present = base + other < count && lifetimes[base + other] != 0;
    const unsigned neighbour = present ? cells[other] : other;
    __syncthreads();
    value = value * kFactor + neighbour;
    cells[t] = value;
    __syncthreads();
  }
  results[base + t] = value;
}

namespace {

/// One block in eight dies at once, one in eight lives to the end, one in eight loses whole warps;
/// in the others every cell has a lifetime of its own.
unsigned char lifetime_of(unsigned i) {
  const unsigned block = i / kThreads;
  const auto random = static_cast<unsigned>(slate::kernels::mix(2, i) >> 40);
  if (block % 8 == 1) return 0;
  if (block % 8 == 2) return kRounds;
  if (block % 8 == 3) return static_cast<unsigned char>((i / 32 + block) % (kRounds + 1));
  return static_cast<unsigned char>(random % (kRounds + 1));
}

void check_block(Run& run, const std::vector<unsigned>& values,
                 const std::vector<unsigned char>& lifetimes, const std::vector<unsigned>& results,
                 std::size_t base) {
  const std::size_t cells = std::min<std::size_t>(kThreads, values.size() - base);
  std::array<unsigned, kThreads> now;
  for (unsigned t = 0; t < kThreads; ++t) {
    now[t] = t < cells && lifetimes[base + t] != 0 ? values[base + t] : t;
  }
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::array<unsigned, kThreads> before = now;
    for (unsigned t = 0; t < cells; ++t) {
      if (lifetimes[base + t] <= round) continue;
      now[t] = before[t] * kFactor + before[(t + (1u << round)) % kThreads];
    }
  }
  for (unsigned t = 0; t < cells; ++t) {
    run.compare_exact(results[base + t], lifetimes[base + t] == 0 ? ~values[base + t] : now[t]);
  }
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  std::vector<unsigned> values(count);
  std::vector<unsigned char> lifetimes(count);
  for (unsigned i = 0; i < count; ++i) {
    values[i] = static_cast<unsigned>(slate::kernels::mix(1, i));
    lifetimes[i] = lifetime_of(i);
  }

  DeviceBuffer<unsigned> device_values(values), device_results(count);
  DeviceBuffer<unsigned char> device_lifetimes(lifetimes);
  run.time([&] {
    early_return<<<blocks_for(count, kThreads), kThreads>>>(
        device_values.data(), device_lifetimes.data(), device_results.data(), count);
  });
  const std::vector<unsigned> results = device_results.download();

  run.add_output(results);
  if (!run.wants_check()) return;
  run.for_sample(blocks_for(count, kThreads), 1 << 14, [&](std::uint64_t block) {
    check_block(run, values, lifetimes, results, block * kThreads);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program(
      {.name = "early_return",
       .summary = "Threads that return, by their data, before barriers that others reach",
       .size_meaning = "cells (threads)",
       .default_size = 100'000,
       .max_size = 1u << 31},
      argc, argv, run);
}
