// product = left * right for square matrices of halves, summed in floats by the Tensor cores: a
// block makes 128 x 128 of the product through tiles in shared memory, a warp 32 x 64 of them. The
// inputs are small multiples of 1/8, so that every sum is exact in whatever order.
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::mix;
using slate::kernels::Run;

constexpr unsigned kTile = 128;  // of the product, by a block
constexpr unsigned kDepth = 32;  // of the factors, in shared memory at a time
constexpr unsigned kThreads = 256;
constexpr unsigned kFragment = 16;
constexpr unsigned kDown = 2;    // fragments of a warp
constexpr unsigned kAcross = 4;  // the same
constexpr unsigned kPad = 8;     // halves behind each row, so that rows begin in different banks
constexpr unsigned kVector = sizeof(uint4) / sizeof(__half);

}  // namespace

/// Copies kRows rows of kColumns halves, as all threads of the block together.
template <unsigned kRows, unsigned kColumns>
static __device__ void load_tile(__half (&tile)[kRows][kColumns + kPad], const __half* from,
                                 unsigned n) {
  constexpr unsigned kVectors = kColumns / kVector;
  for (unsigned i = threadIdx.x; i < kRows * kVectors; i += kThreads) {
    const unsigned row = i / kVectors;
    const unsigned column = i % kVectors * kVector;
    *reinterpret_cast<uint4*>(&tile[row][column]) =
        *reinterpret_cast<const uint4*>(from + std::size_t{row} * n + column);
  }
}

/// n is a multiple of kTile.
__global__ void tensor_gemm(const __half* __restrict__ left, const __half* __restrict__ right,
                            float* __restrict__ product, unsigned n) {
  namespace wmma = nvcuda::wmma;
  __shared__ __align__(32) __half left_tile[kTile][kDepth + kPad];
  __shared__ __align__(32) __half right_tile[kDepth][kTile + kPad];
  const unsigned warp = threadIdx.x / 32;
  const unsigned warp_row = warp / 2 * (kDown * kFragment);
  const unsigned warp_column = warp % 2 * (kAcross * kFragment);
  const unsigned row = blockIdx.y * kTile;
  const unsigned column = blockIdx.x * kTile;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kDown][kAcross];
  for (auto& line : sums) {
    for (auto& sum : line) wmma::fill_fragment(sum, 0.0f);
  }
  for (unsigned base = 0; base < n; base += kDepth) {
    load_tile<kTile, kDepth>(left_tile, left + std::size_t{row} * n + base, n);
    load_tile<kDepth, kTile>(right_tile, right + std::size_t{base} * n + column, n);
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < kDepth; k += kFragment) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[kDown];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[kAcross];
      for (unsigned i = 0; i < kDown; ++i) {
        wmma::load_matrix_sync(a[i], &left_tile[warp_row + i * kFragment][k], kDepth + kPad);
      }
      for (unsigned j = 0; j < kAcross; ++j) {
        wmma::load_matrix_sync(b[j], &right_tile[k][warp_column + j * kFragment], kTile + kPad);
      }
      for (unsigned i = 0; i < kDown; ++i) {
        for (unsigned j = 0; j < kAcross; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < kDown; ++i) {
    for (unsigned j = 0; j < kAcross; ++j) {
      float* const to = product + std::size_t{row + warp_row + i * kFragment} * n + column +
                        warp_column + j * kFragment;
      wmma::store_matrix_sync(to, sums[i][j], n, wmma::mem_row_major);
    }
  }
}

namespace {

/// Eighths from -1 to 7/8; what fills the last tiles up is zero. A product is a multiple of 1/64
/// and at most 1, so sums of 2^18 of them fit in the 24 bits of a float.
std::vector<__half> make_matrix(std::uint64_t seed, std::size_t rows, std::size_t n) {
  std::vector<__half> matrix(n * n, __half(0.0f));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < rows; ++column) {
      const auto eighths = static_cast<int>(mix(seed, row * rows + column) >> 60) - 8;
      matrix[row * n + column] = __half(static_cast<float>(eighths) / 8);
    }
  }
  return matrix;
}

void run(Run& run) {
  const unsigned n = blocks_for(run.size(), kTile) * kTile;
  const std::vector<__half> left = make_matrix(1, run.size(), n);
  const std::vector<__half> right = make_matrix(2, run.size(), n);

  DeviceBuffer<__half> device_left(left), device_right(right);
  DeviceBuffer<float> device_product(left.size());
  const dim3 grid(n / kTile, n / kTile);
  run.time([&] {
    tensor_gemm<<<grid, kThreads>>>(device_left.data(), device_right.data(), device_product.data(),
                                    n);
  });
  const std::vector<float> product = device_product.download();

  run.add_output(product);
  if (!run.wants_check()) return;
  run.for_sample(product.size(), std::max<std::uint64_t>(64, (1 << 25) / n), [&](std::uint64_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      sum += double{__half2float(left[i / n * n + k])} * __half2float(right[k * n + i % n]);
    }
    run.compare_exact(double{product[i]}, sum);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "tensor_gemm",
                                      .summary = "Matrix product of halves by Tensor cores",
                                      .size_meaning = "rows of the square matrices",
                                      .default_size = 256,
                                      .max_size = 32768},
                                     argc, argv, run);
}
