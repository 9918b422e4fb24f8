// Product of a sparse matrix in compressed rows and a vector: a warp a row, its sum by shuffles.
// Rows differ in length up to twentyfold, and the vector is read at random: bandwidth, latency,
// imbalance. Whole warps return early where there are no more rows.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::mix;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kLanes = 32;

}  // namespace

/// Row r has the entries from starts[r] to below starts[r + 1].
__global__ void sparse_matvec(const unsigned* __restrict__ starts,
                              const unsigned* __restrict__ columns,
                              const float* __restrict__ entries, const float* __restrict__ vector,
                              float* __restrict__ product, unsigned rows) {
  const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  if (row >= rows) return;
  const unsigned end = starts[row + 1];
  float sum = 0;
  for (unsigned i = starts[row] + lane; i < end; i += kLanes) {
    sum = fmaf(entries[i], vector[columns[i]], sum);
  }
  for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0) product[row] = sum;
}

namespace {

struct Matrix {
  std::vector<unsigned> starts;
  std::vector<unsigned> columns;
  std::vector<float> entries;
};

/// One row in sixteen has 100 to 300 entries, the others up to 30, some none.
Matrix make_matrix(unsigned rows) {
  Matrix matrix;
  matrix.starts.reserve(rows + std::size_t{1});
  matrix.starts.push_back(0);
  for (unsigned row = 0; row < rows; ++row) {
    const std::uint64_t random = mix(1, row) >> 32;
    const auto length = static_cast<unsigned>(row % 16 == 5 ? 100 + random % 201 : random % 31);
    matrix.starts.push_back(matrix.starts.back() + length);
  }
  const std::size_t entries = matrix.starts.back();
  matrix.columns.resize(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    matrix.columns[i] = static_cast<unsigned>(mix(2, i) >> 32) % rows;
  }
  matrix.entries = slate::kernels::uniform_floats(3, entries, -1, 1);
  return matrix;
}

void run(Run& run) {
  const auto rows = static_cast<unsigned>(run.size());
  const Matrix matrix = make_matrix(rows);
  const std::vector<float> vector = slate::kernels::uniform_floats(4, rows, -1, 1);

  DeviceBuffer<unsigned> starts(matrix.starts), columns(matrix.columns);
  DeviceBuffer<float> entries(matrix.entries), device_vector(vector), device_product(rows);
  run.time([&] {
    sparse_matvec<<<blocks_for(rows, kThreads / kLanes), kThreads>>>(
        starts.data(), columns.data(), entries.data(), device_vector.data(), device_product.data(),
        rows);
  });
  const std::vector<float> product = device_product.download();

  run.add_output(product);
  if (!run.wants_check()) return;
  // A row's sum in any order is off by at most a rounding of the sum of magnitudes for each term.
  run.for_sample(rows, 1 << 17, [&](std::uint64_t row) {
    double sum = 0;
    double magnitude = 0;
    for (unsigned i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
      const double term = double{matrix.entries[i]} * double{vector[matrix.columns[i]]};
      sum += term;
      magnitude += std::fabs(term);
    }
    const unsigned terms = matrix.starts[row + 1] - matrix.starts[row];
    run.compare(product[row], sum, terms * kFloatRounding * magnitude);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "sparse_matvec",
                                      .summary = "Sparse matrix times vector, a warp a row",
                                      .size_meaning = "rows of the square matrix",
                                      .default_size = 20'000,
                                      .max_size = 60'000'000},
                                     argc, argv, run);
}
