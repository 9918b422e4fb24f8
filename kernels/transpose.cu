// Transposition of a square float matrix through padded tiles in shared memory: nothing but memory
// traffic, one barrier, exact.
#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kTile = 32;
constexpr unsigned kRows = 8;

/// A thread moves four values of a tile. The loads are under way before the first is waited for.
template <bool kWhole>
__device__ __forceinline__ void transpose_tile(const float* __restrict__ from,
                                               float* __restrict__ to, unsigned n) {
  __shared__ float tile[kTile][kTile + 1];  // the extra column keeps the banks apart
  const unsigned from_column = blockIdx.x * kTile + threadIdx.x;
  float values[kTile / kRows];
  for (unsigned row = 0; row < kTile; row += kRows) {
    const unsigned from_row = blockIdx.y * kTile + row + threadIdx.y;
    const bool is_inside = kWhole || (from_row < n && from_column < n);
    values[row / kRows] = is_inside ? from[std::size_t{from_row} * n + from_column] : 0;
  }
  for (unsigned row = 0; row < kTile; row += kRows) {
    tile[row + threadIdx.y][threadIdx.x] = values[row / kRows];
  }
  __syncthreads();
  const unsigned to_column = blockIdx.y * kTile + threadIdx.x;
  for (unsigned row = 0; row < kTile; row += kRows) {
    const unsigned y = row + threadIdx.y;
    const unsigned to_row = blockIdx.x * kTile + y;
    if (kWhole || (to_row < n && to_column < n)) {
      to[std::size_t{to_row} * n + to_column] = tile[threadIdx.x][y];
    }
  }
}

}  // namespace

/// Of whole tiles, as the CUDA sample's: asking where the matrix ends would take half as many
/// instructions again. Requires: n is a multiple of kTile.
__global__ void transpose(const float* __restrict__ from, float* __restrict__ to, unsigned n) {
  transpose_tile<true>(from, to, n);
}

__global__ void transpose_ragged(const float* __restrict__ from, float* __restrict__ to,
                                 unsigned n) {
  transpose_tile<false>(from, to, n);
}

namespace {

void run(Run& run) {
  const auto n = static_cast<unsigned>(run.size());
  const std::size_t count = std::size_t{n} * n;
  const std::vector<float> from = slate::kernels::uniform_floats(1, count, -1, 1);

  DeviceBuffer<float> device_from(from), device_to(count);
  const dim3 grid(blocks_for(n, kTile), blocks_for(n, kTile));
  const auto kernel = n % kTile == 0 ? transpose : transpose_ragged;
  run.time([&] { kernel<<<grid, dim3(kTile, kRows)>>>(device_from.data(), device_to.data(), n); });
  const std::vector<float> to = device_to.download();

  run.add_output(to);
  if (!run.wants_check()) return;
  run.for_sample(count, 1 << 22,
                 [&](std::uint64_t i) { run.compare_exact(to[i], from[i % n * n + i / n]); });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "transpose",
                                      .summary = "Transposition of a square float matrix",
                                      .size_meaning = "rows of the square matrix",
                                      .default_size = 512,
                                      .max_size = 65536},
                                     argc, argv, run);
}
