// Quasi-random points in four dimensions (Sobol's sequence by direction numbers in constant
// memory), then their images under the inverse normal distribution (Moro's rational approximation).
// Always 128 blocks, so the grid fits in one wave of a large GPU: low arithmetic, low bandwidth,
// little parallelism.
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kDimensions = 4;
constexpr unsigned kBits = 32;
constexpr unsigned kBlocks = 128;
constexpr unsigned kThreads = 128;

using Directions = std::array<std::array<std::uint32_t, kBits>, kDimensions>;

__constant__ std::uint32_t directions[kDimensions][kBits];

}  // namespace

__global__ void generate(float* __restrict__ points, unsigned count) {
  const unsigned dimension = threadIdx.y;
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    std::uint32_t bits = 0;
    unsigned position = 0;
    for (unsigned rest = i; rest != 0; rest >>= 1, ++position) {
      if (rest & 1) bits ^= directions[dimension][position];
    }
    // The middle of one of 2^23 cells: exact in a float, never 0 or 1, and so is its complement.
    points[std::size_t{dimension} * count + i] = (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f;
  }
}

static __device__ float inverse_normal(float u) {
  const float y = u - 0.5f;
  if (fabsf(y) < 0.42f) {
    const float r = y * y;
    const float above =
        2.50662823884f + r * (-18.61500062529f + r * (41.39119773534f + r * -25.44106049637f));
    const float below =
        1.0f +
        r * (-8.47351093090f + r * (23.08336743743f + r * (-21.06224101826f + r * 3.13082909833f)));
    return y * above / below;
  }
  const float r = logf(-logf(y > 0 ? 1.0f - u : u));
  const float x =
      0.3374754822726147f +
      r * (0.9761690190917186f +
           r * (0.1607979714918209f +
                r * (0.0276438810333863f +
                     r * (0.0038405729373609f +
                          r * (0.0003951896511919f +
                               r * (0.0000321767881768f +
                                    r * (0.0000002888167364f + r * 0.0000003960315187f)))))));
  return y > 0 ? x : -x;
}

__global__ void to_normal(const float* __restrict__ points, float* __restrict__ normals,
                          std::uint64_t count) {
  const std::uint64_t stride = gridDim.x * blockDim.x;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    normals[i] = inverse_normal(points[i]);
  }
}

namespace {

/// A dimension of Sobol's sequence: a primitive polynomial over GF(2) of this degree, its inner
/// coefficients as bits, and odd initial numbers (the k-th below 2^k).
struct Polynomial {
  unsigned degree;
  unsigned inner;
  std::array<std::uint32_t, 3> initial;
};

constexpr std::array<Polynomial, kDimensions> kPolynomials{{
    {0, 0, {}},         // van der Corput's sequence
    {1, 0, {1}},        // x + 1
    {2, 1, {1, 3}},     // x^2 + x + 1
    {3, 1, {1, 3, 1}},  // x^3 + x + 1
}};

Directions make_directions() {
  Directions table{};
  for (unsigned d = 0; d < kDimensions; ++d) {
    const auto& [degree, inner, initial] = kPolynomials[d];
    auto& v = table[d];
    for (unsigned k = 0; k < kBits; ++k) {
      if (degree == 0) {
        v[k] = 1u << (31 - k);
      } else if (k < degree) {
        v[k] = initial[k] << (31 - k);
      } else {
        v[k] = v[k - degree] ^ (v[k - degree] >> degree);
        for (unsigned j = 1; j < degree; ++j) {
          if (inner >> (degree - 1 - j) & 1) v[k] ^= v[k - j];
        }
      }
    }
  }
  return table;
}

/// The distribution function of a result must give back its point. Its slope turns that difference
/// into an error of the result: 3e-9 from the approximation, and roundings that the alternating
/// sums of the rational function magnify up to fifty times near |y| = 0.42.
void check_normal(Run& run, double u, double normal) {
  const double tail = u < 0.5 ? u : 1 - u;
  const double x = u < 0.5 ? normal : -normal;
  const double density = 0.39894228040143267794 * std::exp(-0.5 * x * x);
  const double error = (0.5 * std::erfc(-x * 0.70710678118654752440) - tail) / density;
  run.compare(normal + error, normal, 1e-5 * std::fabs(normal) + 1e-8);
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  const Directions table = make_directions();
  SLATE_REQUIRE(cudaMemcpyToSymbol(directions, table.data(), sizeof(table)));
  DeviceBuffer<float> device_points(std::size_t{count} * kDimensions);
  DeviceBuffer<float> device_normals(device_points.size());
  run.time([&] {
    generate<<<kBlocks, dim3(kThreads, kDimensions)>>>(device_points.data(), count);
    to_normal<<<kBlocks, kThreads>>>(device_points.data(), device_normals.data(),
                                     device_points.size());
  });
  const std::vector<float> points = device_points.download();
  const std::vector<float> normals = device_normals.download();

  run.add_output(points);
  run.add_output(normals);
  if (!run.wants_check()) return;
  run.for_sample(points.size(), 1 << 20, [&](std::uint64_t i) {
    std::uint32_t bits = 0;
    const auto index = static_cast<std::uint32_t>(i % count);
    for (unsigned k = 0; k < kBits; ++k) bits ^= (index >> k & 1) * table[i / count][k];
    run.compare_exact(points[i], static_cast<float>(((bits >> 9) + 0.5) / (1 << 23)));
    check_normal(run, points[i], normals[i]);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program(
      {.name = "quasi_random",
       .summary = "Sobol points and their inverse normal images, 128 blocks",
       .size_meaning = "points, each of four dimensions",
       .default_size = 1 << 14,
       .max_size = 1u << 30},
      argc, argv, run);
}
