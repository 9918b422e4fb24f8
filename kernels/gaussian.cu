// Gaussian elimination without pivoting of a diagonally dominant system, two kernels a column: the
// multipliers of the rows below the pivot, then the update of those rows. The update runs in blocks
// of only 4x4 threads over the whole matrix at every step, most of which soon have nothing to do: a
// kernel that block scheduling limits, not arithmetic.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;
using slate::kernels::uniform;

constexpr unsigned kThreads = 256;
constexpr unsigned kEdge = 4;

}  // namespace

__global__ void compute_multipliers(const float* __restrict__ matrix,
                                    float* __restrict__ multipliers, unsigned n, unsigned step) {
  const unsigned row = step + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  multipliers[row] = matrix[std::size_t{row} * n + step] / matrix[std::size_t{step} * n + step];
}

__global__ void update_rows(float* matrix, float* rhs, const float* __restrict__ multipliers,
                            unsigned n, unsigned step) {
  const unsigned column = step + blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned row = step + 1 + blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  const float multiplier = multipliers[row];
  matrix[std::size_t{row} * n + column] -= multiplier * matrix[std::size_t{step} * n + column];
  if (column == step) rhs[row] -= multiplier * rhs[step];
}

namespace {

std::vector<double> substitute_back(const std::vector<float>& upper, const std::vector<float>& rhs,
                                    std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t row = n; row-- > 0;) {
    double rest = rhs[row];
    for (std::size_t column = row + 1; column < n; ++column) {
      rest -= double{upper[row * n + column]} * x[column];
    }
    x[row] = rest / upper[row * n + row];
  }
  return x;
}

/// The solution must satisfy the original rows. Elimination of a diagonally dominant matrix lets no
/// element grow beyond twice the largest, so row r's residual stays below 2n roundings of |A||x|.
void check(Run& run, const std::vector<float>& matrix, const std::vector<float>& rhs,
           const std::vector<float>& reduced, const std::vector<float>& reduced_rhs) {
  const std::size_t n = rhs.size();
  const std::vector<double> x = substitute_back(reduced, reduced_rhs, n);
  run.for_sample(n, 2048, [&](std::uint64_t row) {
    double product = 0;
    double magnitude = std::fabs(rhs[row]);
    for (std::size_t column = 0; column < n; ++column) {
      const double term = double{matrix[row * n + column]} * x[column];
      product += term;
      magnitude += std::fabs(term);
    }
    run.compare(product, rhs[row], 2.0 * static_cast<double>(n + 1) * kFloatRounding * magnitude);
  });
  // What was eliminated is the difference of two numbers below 2 that agree but for a few
  // roundings.
  run.for_sample(n * n, 1 << 20, [&](std::uint64_t i) {
    if (i / n > i % n) run.compare(reduced[i], 0, 1e-6);
  });
}

void run(Run& run) {
  const auto n = static_cast<unsigned>(run.size());
  std::vector<float> matrix = slate::kernels::uniform_floats(1, std::size_t{n} * n, -1, 1);
  for (std::size_t i = 0; i < n; ++i)
    matrix[i * n + i] = uniform(2, i, 1, 2) + static_cast<float>(n);
  const std::vector<float> rhs = slate::kernels::uniform_floats(3, n, -1, 1);

  DeviceBuffer<float> original(matrix), original_rhs(rhs);
  DeviceBuffer<float> device_matrix(matrix.size()), device_rhs(n), multipliers(n);
  const dim3 block(kEdge, kEdge);
  const dim3 grid(blocks_for(n, kEdge), blocks_for(n, kEdge));
  run.time(
      [&] {
        SLATE_REQUIRE(cudaMemcpy(device_matrix.data(), original.data(), original.bytes(),
                                 cudaMemcpyDeviceToDevice));
        SLATE_REQUIRE(cudaMemcpy(device_rhs.data(), original_rhs.data(), original_rhs.bytes(),
                                 cudaMemcpyDeviceToDevice));
      },
      [&] {
        for (unsigned step = 0; step + 1 < n; ++step) {
          compute_multipliers<<<blocks_for(n, kThreads), kThreads>>>(device_matrix.data(),
                                                                     multipliers.data(), n, step);
          update_rows<<<grid, block>>>(device_matrix.data(), device_rhs.data(), multipliers.data(),
                                       n, step);
        }
      });
  const std::vector<float> reduced = device_matrix.download();
  const std::vector<float> reduced_rhs = device_rhs.download();

  run.add_output(reduced);
  run.add_output(reduced_rhs);
  if (run.wants_check()) check(run, matrix, rhs, reduced, reduced_rhs);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "gaussian",
                                      .summary = "Gaussian elimination in blocks of 4x4 threads",
                                      .size_meaning = "unknowns (rows of the square matrix)",
                                      .default_size = 64,
                                      .max_size = 32768},
                                     argc, argv, run);
}
