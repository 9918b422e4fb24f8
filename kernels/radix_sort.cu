// Sorts 32-bit keys with 32-bit values, least significant digit first, four bits a pass: counts of
// the digits of each block's keys, one prefix sum over all counts, and a scatter that keeps the
// order of equal digits. Warps match digits and scan by shuffles; scattered writes. Exact.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kDigitBits = 4;
constexpr unsigned kDigits = 1u << kDigitBits;
constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kScanThreads = 1024;
constexpr unsigned kMaxBlocks = 4096;
constexpr unsigned kAllLanes = 0xffffffffu;

}  // namespace

static __device__ unsigned digit_of(unsigned key, unsigned shift) {
  return key >> shift & (kDigits - 1);
}

/// A block counts the digits of `per_block` keys. `counts` has a row of gridDim.x for each digit.
__global__ void count_digits(const unsigned* __restrict__ keys, unsigned* __restrict__ counts,
                             unsigned count, unsigned per_block, unsigned shift) {
  __shared__ unsigned local[kDigits];
  const unsigned t = threadIdx.x;
  if (t < kDigits) local[t] = 0;
  __syncthreads();
  const unsigned begin = blockIdx.x * per_block;
  const unsigned end = min(begin + per_block, count);
  for (unsigned i = begin + t; i < end; i += kThreads)
    atomicAdd(&local[digit_of(keys[i], shift)], 1u);
  __syncthreads();
  if (t < kDigits) counts[t * gridDim.x + blockIdx.x] = local[t];
}

/// Exclusive prefix sum in place by a single block of kScanThreads.
__global__ void scan_counts(unsigned* counts, unsigned count) {
  __shared__ unsigned warp_sums[kScanThreads / 32];
  const unsigned t = threadIdx.x;
  const unsigned lane = t % 32;
  const unsigned each = (count + kScanThreads - 1) / kScanThreads;
  const unsigned begin = min(t * each, count);
  const unsigned end = min(begin + each, count);
  unsigned own = 0;
  for (unsigned i = begin; i < end; ++i) own += counts[i];

  unsigned inclusive = own;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane >= distance) inclusive += before;
  }
  if (lane == 31) warp_sums[t / 32] = inclusive;
  __syncthreads();
  if (t < 32) {
    unsigned sum = warp_sums[t];
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const unsigned before = __shfl_up_sync(kAllLanes, sum, distance);
      if (lane >= distance) sum += before;
    }
    warp_sums[t] = sum;
  }
  __syncthreads();
  unsigned sum = inclusive - own + (t < 32 ? 0 : warp_sums[t / 32 - 1]);
  for (unsigned i = begin; i < end; ++i) {
    const unsigned here = counts[i];
    counts[i] = sum;
    sum += here;
  }
}

/// `offsets`: the scanned counts. `per_block` is a multiple of kThreads.
__global__ void scatter(const unsigned* __restrict__ keys, const unsigned* __restrict__ values,
                        unsigned* __restrict__ sorted_keys, unsigned* __restrict__ sorted_values,
                        const unsigned* __restrict__ offsets, unsigned count, unsigned per_block,
                        unsigned shift) {
  __shared__ unsigned next[kDigits];  // where the next key of a digit goes
  __shared__ unsigned in_warp[kWarps][kDigits];
  const unsigned t = threadIdx.x;
  const unsigned warp = t / 32;
  if (t < kWarps * kDigits) in_warp[t / kDigits][t % kDigits] = 0;
  if (t < kDigits) next[t] = offsets[t * gridDim.x + blockIdx.x];
  const unsigned begin = blockIdx.x * per_block;
  const unsigned end = min(begin + per_block, count);
  for (unsigned base = begin; base < end; base += kThreads) {
    __syncthreads();
    const bool inside = base + t < end;
    const unsigned key = inside ? keys[base + t] : 0;
    const unsigned digit = inside ? digit_of(key, shift) : kDigits;
    const unsigned peers = __match_any_sync(kAllLanes, digit);
    const unsigned rank = __popc(peers & ((1u << t % 32) - 1));
    if (inside && rank == 0) in_warp[warp][digit] = __popc(peers);
    __syncthreads();
    if (inside) {
      unsigned to = next[digit] + rank;
      for (unsigned w = 0; w < warp; ++w) to += in_warp[w][digit];
      sorted_keys[to] = key;
      sorted_values[to] = values[base + t];
    }
    __syncthreads();
    if (t < kDigits) {
      for (unsigned w = 0; w < kWarps; ++w) {
        next[t] += in_warp[w][t];
        in_warp[w][t] = 0;
      }
    }
  }
}

namespace {

/// Values are the keys' first places. If keys and values rise together and every key is that of its
/// value, then no value comes twice: it is the one stable order of all keys.
void check(Run& run, const std::vector<unsigned>& keys, const std::vector<unsigned>& sorted_keys,
           const std::vector<unsigned>& sorted_values) {
  const auto pair_at = [&](std::size_t i) {
    return std::uint64_t{sorted_keys[i]} << 32 | sorted_values[i];
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool known = sorted_values[i] < keys.size();
    run.compare_exact(known, true);
    if (known) run.compare_exact(sorted_keys[i], keys[sorted_values[i]]);
    if (i > 0) run.compare_exact(pair_at(i) > pair_at(i - 1), true);
  }
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  std::vector<unsigned> keys(count), places(count);
  for (unsigned i = 0; i < count; ++i) {
    // Some keys are frequent, so that the order of equal ones shows.
    const std::uint64_t random = slate::kernels::mix(1, i);
    keys[i] = static_cast<unsigned>(i % 8 == 0 ? random % 100 : random >> 32);
    places[i] = i;
  }
  const unsigned tiles = blocks_for(count, kThreads);
  const unsigned per_block = blocks_for(tiles, std::min(tiles, kMaxBlocks)) * kThreads;
  const unsigned blocks = blocks_for(count, per_block);

  DeviceBuffer<unsigned> device_keys(keys), device_places(places);
  DeviceBuffer<unsigned> even_keys(count), even_values(count), odd_keys(count), odd_values(count);
  DeviceBuffer<unsigned> counts(std::size_t{blocks} * kDigits);
  run.time([&] {
    const unsigned* from_keys = device_keys.data();
    const unsigned* from_values = device_places.data();
    for (unsigned pass = 0; pass < 32 / kDigitBits; ++pass) {
      const unsigned shift = pass * kDigitBits;
      auto& to_keys = pass % 2 == 0 ? odd_keys : even_keys;
      auto& to_values = pass % 2 == 0 ? odd_values : even_values;
      count_digits<<<blocks, kThreads>>>(from_keys, counts.data(), count, per_block, shift);
      scan_counts<<<1, kScanThreads>>>(counts.data(), blocks * kDigits);
      scatter<<<blocks, kThreads>>>(from_keys, from_values, to_keys.data(), to_values.data(),
                                    counts.data(), count, per_block, shift);
      from_keys = to_keys.data();
      from_values = to_values.data();
    }
  });
  const std::vector<unsigned> sorted_keys = even_keys.download();
  const std::vector<unsigned> sorted_values = even_values.download();

  run.add_output(sorted_keys);
  run.add_output(sorted_values);
  if (run.wants_check()) check(run, keys, sorted_keys, sorted_values);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "radix_sort",
                                      .summary = "Stable sort of keys with values, 4 bits a pass",
                                      .size_meaning = "pairs of key and value",
                                      .default_size = 60'000,
                                      .max_size = 1u << 30},
                                     argc, argv, run);
}
