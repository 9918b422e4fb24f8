// product = left * right for square float matrices, through tiles in shared memory: compute-bound,
// two barriers a tile, blocks of 1024 threads. A template kernel.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr unsigned kTileEdge = 32;

}  // namespace

template <unsigned kTile>
__global__ void sgemm(const float* __restrict__ left, const float* __restrict__ right,
                      float* __restrict__ product, unsigned n) {
  __shared__ float left_tile[kTile][kTile];
  __shared__ float right_tile[kTile][kTile];
  const unsigned tx = threadIdx.x;
  const unsigned ty = threadIdx.y;
  const unsigned column = blockIdx.x * kTile + tx;
  const unsigned row = blockIdx.y * kTile + ty;
  float sum = 0;
  for (unsigned base = 0; base < n; base += kTile) {
    const bool left_inside = row < n && base + tx < n;
    const bool right_inside = base + ty < n && column < n;
    left_tile[ty][tx] = left_inside ? left[std::size_t{row} * n + base + tx] : 0.0f;
    right_tile[ty][tx] = right_inside ? right[std::size_t{base + ty} * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < kTile; ++k) sum += left_tile[ty][k] * right_tile[k][tx];
    __syncthreads();
  }
  if (row < n && column < n) product[std::size_t{row} * n + column] = sum;
}

namespace {

void run(Run& run) {
  const auto n = static_cast<unsigned>(run.size());
  const std::size_t count = std::size_t{n} * n;
  const std::vector<float> left = slate::kernels::uniform_floats(1, count, -1, 1);
  const std::vector<float> right = slate::kernels::uniform_floats(2, count, -1, 1);

  DeviceBuffer<float> device_left(left), device_right(right), device_product(count);
  const dim3 block(kTileEdge, kTileEdge);
  const dim3 grid(blocks_for(n, kTileEdge), blocks_for(n, kTileEdge));
  run.time([&] {
    sgemm<kTileEdge>
        <<<grid, block>>>(device_left.data(), device_right.data(), device_product.data(), n);
  });
  const std::vector<float> product = device_product.download();

  run.add_output(product);
  if (!run.wants_check()) return;
  // A sum of n terms in any order is off by at most n roundings of the sum of their magnitudes. The
  // sample shrinks with n so that the check costs about 32 million multiplications.
  run.for_sample(count, std::max<std::uint64_t>(64, (1 << 25) / n), [&](std::uint64_t i) {
    const std::size_t row = i / n, column = i % n;
    double sum = 0;
    double magnitude = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double term = double{left[row * n + k]} * double{right[k * n + column]};
      sum += term;
      magnitude += std::fabs(term);
    }
    run.compare(product[i], sum, n * kFloatRounding * magnitude);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "sgemm",
                                      .summary = "Tiled single-precision matrix product",
                                      .size_meaning = "rows of the square matrices",
                                      .default_size = 128,
                                      .max_size = 32768},
                                     argc, argv, run);
}
