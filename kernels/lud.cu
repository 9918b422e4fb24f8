// LU decomposition without pivoting, in place, of a diagonally dominant matrix, in tiles of 32x32.
// A step of the outer loop takes three kernels that depend on one another: the tile on the diagonal
// (a single block), the tiles to its right and below it, and all others behind those. Grids shrink
// from step to step, so the same kernels run with much work and with little.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;
using slate::kernels::uniform;

constexpr unsigned kTile = 32;

}  // namespace

/// The tile whose first row and column is `corner`. Blocks of kTile x kTile threads.
__global__ void lud_diagonal(float* matrix, unsigned n, unsigned corner) {
  __shared__ float tile[kTile][kTile];
  const unsigned tx = threadIdx.x;
  const unsigned ty = threadIdx.y;
  float* const element = matrix + std::size_t{corner + ty} * n + corner + tx;
  tile[ty][tx] = *element;
  for (unsigned k = 0; k + 1 < kTile; ++k) {
    __syncthreads();
    if (ty > k && tx == k) tile[ty][k] /= tile[k][k];
    __syncthreads();
    if (ty > k && tx > k) tile[ty][tx] = fmaf(-tile[ty][k], tile[k][tx], tile[ty][tx]);
  }
  *element = tile[ty][tx];
}

/// Solves lower * x = right tile and y * upper = bottom tile, by the factors of the diagonal tile.
/// Blocks of kTile x 2 threads: the first warp has a column of the right tile each, the second one
/// a row of the bottom tile.
__global__ void lud_perimeter(float* matrix, unsigned n, unsigned corner) {
  __shared__ float diagonal[kTile][kTile];
  __shared__ float right[kTile][kTile];
  __shared__ float bottom[kTile][kTile + 1];
  const unsigned t = threadIdx.x;
  const unsigned far = corner + (blockIdx.x + 1) * kTile;
  for (unsigned row = threadIdx.y; row < kTile; row += 2) {
    diagonal[row][t] = matrix[std::size_t{corner + row} * n + corner + t];
    right[row][t] = matrix[std::size_t{corner + row} * n + far + t];
    bottom[row][t] = matrix[std::size_t{far + row} * n + corner + t];
  }
  __syncthreads();
  if (threadIdx.y == 0) {
    for (unsigned row = 1; row < kTile; ++row) {
      float value = right[row][t];
      for (unsigned k = 0; k < row; ++k) value = fmaf(-diagonal[row][k], right[k][t], value);
      right[row][t] = value;
    }
  } else {
    for (unsigned column = 0; column < kTile; ++column) {
      float value = bottom[t][column];
      for (unsigned k = 0; k < column; ++k) {
        value = fmaf(-bottom[t][k], diagonal[k][column], value);
      }
      bottom[t][column] = value / diagonal[column][column];
    }
  }
  __syncthreads();
  for (unsigned row = threadIdx.y; row < kTile; row += 2) {
    matrix[std::size_t{corner + row} * n + far + t] = right[row][t];
    matrix[std::size_t{far + row} * n + corner + t] = bottom[row][t];
  }
}

/// Takes the product of the tile at the left edge and the tile at the top off every tile behind.
/// Blocks of kTile x kTile threads.
__global__ void lud_internal(float* matrix, unsigned n, unsigned corner) {
  __shared__ float lower[kTile][kTile];
  __shared__ float upper[kTile][kTile];
  const unsigned tx = threadIdx.x;
  const unsigned ty = threadIdx.y;
  const unsigned row = corner + (blockIdx.y + 1) * kTile + ty;
  const unsigned column = corner + (blockIdx.x + 1) * kTile + tx;
  lower[ty][tx] = matrix[std::size_t{row} * n + corner + tx];
  upper[ty][tx] = matrix[std::size_t{corner + ty} * n + column];
  __syncthreads();
  float value = matrix[std::size_t{row} * n + column];
#pragma unroll
  for (unsigned k = 0; k < kTile; ++k) value = fmaf(-lower[ty][k], upper[k][tx], value);
  matrix[std::size_t{row} * n + column] = value;
}

namespace {

void launch_decomposition(float* matrix, unsigned n) {
  const dim3 square(kTile, kTile);
  for (unsigned corner = 0; corner < n; corner += kTile) {
    lud_diagonal<<<1, square>>>(matrix, n, corner);
    const unsigned behind = (n - corner) / kTile - 1;
    if (behind == 0) break;
    lud_perimeter<<<behind, dim3(kTile, 2)>>>(matrix, n, corner);
    lud_internal<<<dim3(behind, behind), square>>>(matrix, n, corner);
  }
}

/// Whole tiles: the unknowns that fill the last one up have a 1 on the diagonal and nothing else.
std::vector<float> make_matrix(std::size_t unknowns, std::size_t n) {
  std::vector<float> matrix(n * n);
  for (std::size_t row = 0; row < n; ++row) {
    const bool padding = row >= unknowns;
    for (std::size_t column = 0; column < unknowns && !padding; ++column) {
      matrix[row * n + column] = uniform(1, row * unknowns + column, -1, 1);
    }
    matrix[row * n + row] = padding ? 1 : uniform(2, row, 1, 2) + static_cast<float>(unknowns);
  }
  return matrix;
}

void run(Run& run) {
  const unsigned n = blocks_for(run.size(), kTile) * kTile;
  const std::vector<float> matrix = make_matrix(run.size(), n);
  DeviceBuffer<float> original(matrix), device_matrix(matrix.size());
  run.time(
      [&] {
        SLATE_REQUIRE(cudaMemcpy(device_matrix.data(), original.data(), original.bytes(),
                                 cudaMemcpyDeviceToDevice));
      },
      [&] { launch_decomposition(device_matrix.data(), n); });
  const std::vector<float> factors = device_matrix.download();

  run.add_output(factors);
  if (!run.wants_check()) return;
  // The product of the factors must be the matrix. However the sums are ordered, an element is off
  // by at most as many roundings as it has terms, of the sum of their magnitudes; the division and
  // the last subtraction add two.
  run.for_sample(matrix.size(), std::max<std::uint64_t>(4096, (1 << 24) / n), [&](std::uint64_t i) {
    const std::size_t row = i / n, column = i % n;
    const std::size_t terms = std::min(row, column) + 1;
    double sum = 0;
    double magnitude = 0;
    for (std::size_t k = 0; k < terms; ++k) {
      const double left = k == row ? 1.0 : factors[row * n + k];
      const double term = left * factors[k * n + column];
      sum += term;
      magnitude += std::fabs(term);
    }
    run.compare(sum, matrix[i], static_cast<double>(terms + 2) * kFloatRounding * magnitude);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "lud",
                                      .summary = "LU decomposition in tiles, three kernels a step",
                                      .size_meaning = "rows of the square matrix",
                                      .default_size = 150,
                                      .max_size = 32768},
                                     argc, argv, run);
}
