// Exclusive prefix sum of 32-bit integers (modulo 2^32): a work-efficient scan of 512 elements a
// block, the block sums scanned in the same way, level by level, then added back. Exact; many
// barriers under conditions that narrow to one thread.
#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kElements = 2 * kThreads;

}  // namespace

/// `values` and `sums` may be the same array: a block reads all of its elements before it writes
/// any.
__global__ void scan_blocks(const unsigned* values, unsigned* scanned, unsigned* block_sums,
                            unsigned count) {
  __shared__ unsigned tree[kElements];
  const unsigned t = threadIdx.x;
  const unsigned base = blockIdx.x * kElements;
  for (unsigned i = t; i < kElements; i += kThreads) {
    tree[i] = base + i < count ? values[base + i] : 0;
  }
  for (unsigned distance = 1; distance < kElements; distance *= 2) {
    __syncthreads();
    const unsigned right = (t + 1) * distance * 2 - 1;
    if (right < kElements) tree[right] += tree[right - distance];
  }
  __syncthreads();
  if (t == 0) {
    block_sums[blockIdx.x] = tree[kElements - 1];
    tree[kElements - 1] = 0;
  }
  for (unsigned distance = kThreads; distance > 0; distance /= 2) {
    __syncthreads();
    const unsigned right = (t + 1) * distance * 2 - 1;
    if (right < kElements) {
      const unsigned left_sum = tree[right - distance];
      tree[right - distance] = tree[right];
      tree[right] += left_sum;
    }
  }
  __syncthreads();
  for (unsigned i = t; i < kElements && base + i < count; i += kThreads) {
    scanned[base + i] = tree[i];
  }
}

__global__ void add_offsets(unsigned* scanned, const unsigned* __restrict__ offsets,
                            unsigned count) {
  const unsigned base = blockIdx.x * kElements;
  const unsigned offset = offsets[blockIdx.x];
  for (unsigned i = threadIdx.x; i < kElements && base + i < count; i += kThreads) {
    scanned[base + i] += offset;
  }
}

namespace {

/// levels[0] holds the sums of the blocks of `values`, levels[1] the sums of the blocks of
/// levels[0], ...
void launch_scan(const unsigned* values, unsigned* scanned, unsigned count,
                 std::vector<DeviceBuffer<unsigned>>& levels, std::size_t level) {
  const unsigned blocks = blocks_for(count, kElements);
  unsigned* sums = levels[level].data();
  scan_blocks<<<blocks, kThreads>>>(values, scanned, sums, count);
  if (blocks == 1) return;
  launch_scan(sums, sums, blocks, levels, level + 1);
  add_offsets<<<blocks, kThreads>>>(scanned, sums, count);
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  std::vector<unsigned> values(count);
  for (unsigned i = 0; i < count; ++i) values[i] = slate::kernels::mix(1, i) >> 44;

  DeviceBuffer<unsigned> device_values(values), device_scanned(count);
  std::vector<DeviceBuffer<unsigned>> levels;
  unsigned blocks = count;
  do {
    blocks = blocks_for(blocks, kElements);
    levels.emplace_back(blocks);
  } while (blocks > 1);
  run.time([&] { launch_scan(device_values.data(), device_scanned.data(), count, levels, 0); });
  const std::vector<unsigned> scanned = device_scanned.download();

  run.add_output(scanned);
  if (!run.wants_check()) return;
  unsigned wanted = 0;
  for (unsigned i = 0; i < count; ++i) {
    run.compare_exact(scanned[i], wanted);
    wanted += values[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "scan",
                                      .summary = "Exclusive prefix sum of 32-bit integers",
                                      .size_meaning = "elements",
                                      .default_size = 300'000,
                                      .max_size = 1u << 31},
                                     argc, argv, run);
}
