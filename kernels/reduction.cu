// Sum of a float vector in two passes of a tree in dynamic shared memory. The number of blocks
// depends on the size alone and every addition has its place, so the result is the same bit for bit
// each time.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kMaxBlocks = 4096;

}  // namespace

__global__ void reduce(const float* __restrict__ values, float* __restrict__ sums,
                       std::uint64_t count) {
  extern __shared__ float scratch[];
  float sum = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    sum += values[i];
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = scratch[0];
}

namespace {

void run(Run& run) {
  const std::uint64_t count = run.size();
  const std::vector<float> values = slate::kernels::uniform_floats(1, count, 0, 1);
  const unsigned blocks = std::min(blocks_for(count, kThreads * 4), kMaxBlocks);

  DeviceBuffer<float> device_values(values), device_sums(blocks), device_total(1);
  constexpr std::size_t kSharedBytes = kThreads * sizeof(float);
  run.time([&] {
    reduce<<<blocks, kThreads, kSharedBytes>>>(device_values.data(), device_sums.data(), count);
    reduce<<<1, kThreads, kSharedBytes>>>(device_sums.data(), device_total.data(), blocks);
  });
  const std::vector<float> sums = device_sums.download();
  const std::vector<float> total = device_total.download();

  run.add_output(sums);
  run.add_output(total);
  if (!run.wants_check()) return;
  std::vector<double> wanted(blocks);
  for (std::uint64_t i = 0; i < count; ++i) wanted[i / kThreads % blocks] += values[i];
  double wanted_total = 0;
  // The values are positive, so an error is at most one rounding of the sum for each addition on
  // the longest path: those of a thread's own values, then eight of the tree, in both passes.
  const double pass1 = std::ceil(static_cast<double>(count) / blocks / kThreads) + 8;
  const double pass2 = std::ceil(double{1} * blocks / kThreads) + 8;
  for (unsigned b = 0; b < blocks; ++b) {
    run.compare(sums[b], wanted[b], pass1 * kFloatRounding * wanted[b]);
    wanted_total += wanted[b];
  }
  run.compare(total[0], wanted_total, (pass1 + pass2) * kFloatRounding * wanted_total);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "reduction",
                                      .summary = "Sum of a float vector by trees in shared memory",
                                      .size_meaning = "elements",
                                      .default_size = 1 << 19,
                                      .max_size = std::uint64_t{1} << 34},
                                     argc, argv, run);
}
