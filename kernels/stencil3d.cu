// One step of a 25-point stencil (four cells each way on three axes) on a cubic float grid. A block
// marches through z with a plane in shared memory and a column in registers: bandwidth, many
// registers, two barriers a plane that also the threads outside of the grid reach.
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr int kRadius = 4;
constexpr int kWidth = 32;
constexpr int kHeight = 8;

}  // namespace

/// Weight of the cell itself and of the six cells at each distance.
struct Weights {
  float at[kRadius + 1];
};

static __device__ float load(const float* __restrict__ grid, int x, int y, int z, int n) {
  const bool inside = x >= 0 && x < n && y >= 0 && y < n && z < n;
  return inside ? grid[(std::size_t(z) * n + y) * n + x] : 0.0f;
}

/// Cells closer than kRadius to the surface keep their value.
__global__ void stencil3d(const float* __restrict__ from, float* __restrict__ to, Weights weights,
                          int n) {
  __shared__ float plane[kHeight + 2 * kRadius][kWidth + 2 * kRadius];
  const int x = static_cast<int>(blockIdx.x) * kWidth + static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(blockIdx.y) * kHeight + static_cast<int>(threadIdx.y);
  const int px = static_cast<int>(threadIdx.x) + kRadius;
  const int py = static_cast<int>(threadIdx.y) + kRadius;
  const bool inner = x >= kRadius && x < n - kRadius && y >= kRadius && y < n - kRadius;

  float column[2 * kRadius + 1];  // column[kRadius + d] is the cell at z + d
#pragma unroll
  for (int d = 0; d < kRadius; ++d) column[d] = 0;
#pragma unroll
  for (int d = 0; d <= kRadius; ++d) column[kRadius + d] = load(from, x, y, d, n);

  for (int z = 0; z < n; ++z) {
    plane[py][px] = column[kRadius];
    if (threadIdx.x < kRadius) {
      plane[py][px - kRadius] = load(from, x - kRadius, y, z, n);
      plane[py][px + kWidth] = load(from, x + kWidth, y, z, n);
    }
    if (threadIdx.y < kRadius) {
      plane[py - kRadius][px] = load(from, x, y - kRadius, z, n);
      plane[py + kHeight][px] = load(from, x, y + kHeight, z, n);
    }
    __syncthreads();
    float value = column[kRadius];
    if (inner && z >= kRadius && z < n - kRadius) {
      value *= weights.at[0];
#pragma unroll
      for (int d = 1; d <= kRadius; ++d) {
        const float sides = plane[py][px - d] + plane[py][px + d] + plane[py - d][px] +
                            plane[py + d][px] + column[kRadius - d] + column[kRadius + d];
        value += weights.at[d] * sides;
      }
    }
    if (x < n && y < n) to[(std::size_t(z) * n + y) * n + x] = value;
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 2 * kRadius; ++d) column[d] = column[d + 1];
    column[2 * kRadius] = load(from, x, y, z + kRadius + 1, n);
  }
}

namespace {

/// Compares one cell. A sum of seven products of sums of six, with less than 32 roundings in a row.
void check_cell(Run& run, const std::vector<float>& from, const std::vector<float>& to,
                const Weights& weights, std::size_t n, std::size_t i) {
  const std::array<std::size_t, 3> stride{1, n, n * n};
  bool inner = true;
  for (const std::size_t s : stride) {
    const std::size_t at = i / s % n;
    inner = inner && at >= kRadius && at + kRadius < n;
  }
  if (!inner) {
    run.compare_exact(to[i], from[i]);
    return;
  }
  double sum = double{weights.at[0]} * from[i];
  double magnitude = std::fabs(sum);
  for (std::size_t d = 1; d <= kRadius; ++d) {
    for (const std::size_t s : stride) {
      const double low = double{weights.at[d]} * from[i - d * s];
      const double high = double{weights.at[d]} * from[i + d * s];
      sum += low + high;
      magnitude += std::fabs(low) + std::fabs(high);
    }
  }
  run.compare(to[i], sum, 32 * kFloatRounding * magnitude);
}

void run(Run& run) {
  const std::size_t n = run.size();
  const Weights weights{{0.40f, 0.06f, 0.025f, 0.01f, 0.005f}};
  const std::vector<float> from = slate::kernels::uniform_floats(1, n * n * n, -1, 1);

  DeviceBuffer<float> device_from(from), device_to(from.size());
  const dim3 grid(blocks_for(n, kWidth), blocks_for(n, kHeight));
  run.time([&] {
    stencil3d<<<grid, dim3(kWidth, kHeight)>>>(device_from.data(), device_to.data(), weights,
                                               static_cast<int>(n));
  });
  const std::vector<float> to = device_to.download();

  run.add_output(to);
  if (!run.wants_check()) return;
  run.for_sample(to.size(), 1 << 21,
                 [&](std::uint64_t i) { check_cell(run, from, to, weights, n, i); });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "stencil3d",
                                      .summary = "One step of a 25-point stencil on a cubic grid",
                                      .size_meaning = "cells along each edge of the cube",
                                      .default_size = 48,
                                      .max_size = 2048},
                                     argc, argv, run);
}
