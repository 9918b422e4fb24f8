// A square image convolved with a separable filter of 17 x 17 weights: rows by one kernel, columns
// by the other. Weights in constant memory, pixels with their halos in shared memory, several
// results a thread. Pixels beyond the edges count as zero.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr int kRadius = 8;
constexpr int kWeights = 2 * kRadius + 1;
// Rows: blocks of 32 x 8 threads, four pixels each along x. Columns: the same along y.
constexpr int kThreadsX = 32;
constexpr int kThreadsY = 8;
constexpr int kEach = 4;
constexpr int kRowTile = kThreadsX * kEach;
constexpr int kColumnTile = kThreadsY * kEach;

using Weights = std::array<float, kWeights>;

__constant__ float weights[kWeights];

}  // namespace

__global__ void convolve_rows(const float* __restrict__ image, float* __restrict__ result, int n) {
  __shared__ float tile[kThreadsY][kRowTile + 2 * kRadius];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int left = static_cast<int>(blockIdx.x) * kRowTile;
  const int y = static_cast<int>(blockIdx.y) * kThreadsY + ty;
  const std::size_t row = static_cast<std::size_t>(y) * n;
  for (int i = tx; i < kRowTile + 2 * kRadius; i += kThreadsX) {
    const int x = left + i - kRadius;
    tile[ty][i] = x >= 0 && x < n && y < n ? image[row + x] : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = tx + k * kThreadsX;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWeights; ++w) sum = fmaf(weights[w], tile[ty][i + w], sum);
    if (left + i < n && y < n) result[row + left + i] = sum;
  }
}

__global__ void convolve_columns(const float* __restrict__ image, float* __restrict__ result,
                                 int n) {
  __shared__ float tile[kColumnTile + 2 * kRadius][kThreadsX];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int x = static_cast<int>(blockIdx.x) * kThreadsX + tx;
  const int top = static_cast<int>(blockIdx.y) * kColumnTile;
  for (int i = ty; i < kColumnTile + 2 * kRadius; i += kThreadsY) {
    const int y = top + i - kRadius;
    tile[i][tx] = y >= 0 && y < n && x < n ? image[static_cast<std::size_t>(y) * n + x] : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = ty + k * kThreadsY;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWeights; ++w) sum = fmaf(weights[w], tile[i + w][tx], sum);
    if (top + i < n && x < n) result[static_cast<std::size_t>(top + i) * n + x] = sum;
  }
}

namespace {

/// Differs left from right, so that a filter that is applied the wrong way round is found.
Weights make_weights() {
  Weights values{};
  double sum = 0;
  for (int w = 0; w < kWeights; ++w) {
    const double x = (w - kRadius - 0.75) / 3.5;
    values[w] = static_cast<float>(std::exp(-x * x));
    sum += values[w];
  }
  for (float& value : values) value = static_cast<float>(value / sum);
  return values;
}

/// The sum over the square, not by rows and columns. Both passes round each of their 17 terms once.
void check_pixel(Run& run, const std::vector<float>& image, const std::vector<float>& result,
                 const Weights& filter, int n, std::uint64_t i) {
  const int x = static_cast<int>(i % n), y = static_cast<int>(i / n);
  double sum = 0;
  double magnitude = 0;
  for (int v = std::max(0, y - kRadius); v <= std::min(n - 1, y + kRadius); ++v) {
    for (int u = std::max(0, x - kRadius); u <= std::min(n - 1, x + kRadius); ++u) {
      const double weight = double{filter[v - y + kRadius]} * double{filter[u - x + kRadius]};
      const double term = weight * image[static_cast<std::size_t>(v) * n + u];
      sum += term;
      magnitude += std::fabs(term);
    }
  }
  run.compare(result[i], sum, (2 * kWeights + 1) * kFloatRounding * magnitude);
}

void run(Run& run) {
  const int n = static_cast<int>(run.size());
  const std::size_t pixels = static_cast<std::size_t>(n) * n;
  const std::vector<float> image = slate::kernels::uniform_floats(1, pixels, -1, 1);
  const Weights filter = make_weights();
  SLATE_REQUIRE(cudaMemcpyToSymbol(weights, filter.data(), sizeof(filter)));

  DeviceBuffer<float> device_image(image), rows(pixels), device_result(pixels);
  const dim3 block(kThreadsX, kThreadsY);
  run.time([&] {
    convolve_rows<<<dim3(blocks_for(n, kRowTile), blocks_for(n, kThreadsY)), block>>>(
        device_image.data(), rows.data(), n);
    convolve_columns<<<dim3(blocks_for(n, kThreadsX), blocks_for(n, kColumnTile)), block>>>(
        rows.data(), device_result.data(), n);
  });
  const std::vector<float> result = device_result.download();

  run.add_output(result);
  if (!run.wants_check()) return;
  run.for_sample(pixels, 1 << 17,
                 [&](std::uint64_t i) { check_pixel(run, image, result, filter, n, i); });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "convolution",
                                      .summary = "Separable convolution of an image, 17 x 17",
                                      .size_meaning = "pixels along each edge of the image",
                                      .default_size = 300,
                                      .max_size = 32768},
                                     argc, argv, run);
}
