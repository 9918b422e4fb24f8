// The 64 points in space that are nearest to one, ordered: distances by one kernel, then blocks
// that sort 1024 of them in shared memory (Batcher's bitonic network) and keep the best 64, level
// by level until one block is left. Bandwidth, then barriers with hardly any arithmetic between
// them.
#include <algorithm>
#include <cstring>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr unsigned kNearest = 64;
constexpr unsigned kSorted = 1024;          // candidates of a block
constexpr unsigned kThreads = kSorted / 2;  // each compares two
constexpr std::uint64_t kNone = ~std::uint64_t{0};

}  // namespace

struct Point {
  float x, y, z;
};

/// Squared distance (bits of a float that is not negative are ordered as it is) above, the point's
/// number below: no two are equal.
__global__ void measure_distances(const float* __restrict__ x, const float* __restrict__ y,
                                  const float* __restrict__ z, std::uint64_t* __restrict__ keys,
                                  Point from, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float dx = x[i] - from.x;
  const float dy = y[i] - from.y;
  const float dz = z[i] - from.z;
  const float squared = fmaf(dx, dx, fmaf(dy, dy, __fmul_rn(dz, dz)));
  keys[i] = std::uint64_t{__float_as_uint(squared)} << 32 | i;
}

/// Of every kSorted keys the kNearest smallest, in rising order; kNone where there are fewer.
__global__ void keep_nearest(const std::uint64_t* __restrict__ keys,
                             std::uint64_t* __restrict__ nearest, unsigned count) {
  __shared__ std::uint64_t sorted[kSorted];
  const unsigned t = threadIdx.x;
  const unsigned base = blockIdx.x * kSorted;
  for (unsigned i = t; i < kSorted; i += kThreads) {
    sorted[i] = base + i < count ? keys[base + i] : kNone;
  }
  for (unsigned run = 2; run <= kSorted; run *= 2) {
    for (unsigned stride = run / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned low = 2 * t - (t & (stride - 1));
      const std::uint64_t a = sorted[low];
      const std::uint64_t b = sorted[low + stride];
      const bool rising = (low & run) == 0;
      if ((a > b) == rising) {
        sorted[low] = b;
        sorted[low + stride] = a;
      }
    }
  }
  __syncthreads();
  if (t < kNearest) nearest[blockIdx.x * kNearest + t] = sorted[t];
}

namespace {

double squared_distance(const std::vector<float>& x, const std::vector<float>& y,
                        const std::vector<float>& z, const Point& from, std::size_t i) {
  const double dx = double{x[i]} - double{from.x};
  const double dy = double{y[i]} - double{from.y};
  const double dz = double{z[i]} - double{from.z};
  return dx * dx + dy * dy + dz * dz;
}

/// The k-th distance must be the k-th smallest of all, and that of the point that is named; no
/// point may be named twice. A difference, its square and two sums: five roundings at most.
void check(Run& run, const std::vector<std::uint64_t>& nearest, std::vector<double> distances) {
  std::vector<std::uint32_t> named;
  constexpr double kTolerance = 5 * kFloatRounding;
  const std::size_t found = std::min<std::size_t>(kNearest, distances.size());
  for (std::size_t k = 0; k < found; ++k) {
    const auto i = static_cast<std::uint32_t>(nearest[k]);
    const auto bits = static_cast<std::uint32_t>(nearest[k] >> 32);
    float squared;
    std::memcpy(&squared, &bits, sizeof(squared));
    const double wanted = i < distances.size() ? distances[i] : -1;
    run.compare(squared, wanted, kTolerance * wanted);
    if (k > 0) run.compare_exact(nearest[k] > nearest[k - 1], true);
    named.push_back(i);
  }
  std::sort(named.begin(), named.end());
  run.compare_exact(std::adjacent_find(named.begin(), named.end()) == named.end(), true);
  std::nth_element(distances.begin(), distances.begin() + (found - 1), distances.end());
  std::sort(distances.begin(), distances.begin() + found);
  for (std::size_t k = 0; k < found; ++k) {
    const auto bits = static_cast<std::uint32_t>(nearest[k] >> 32);
    float squared;
    std::memcpy(&squared, &bits, sizeof(squared));
    run.compare(squared, distances[k], kTolerance * distances[k]);
  }
  for (std::size_t k = found; k < kNearest; ++k) run.compare_exact(nearest[k] == kNone, true);
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  const std::vector<float> x = slate::kernels::uniform_floats(1, count, -1, 1);
  const std::vector<float> y = slate::kernels::uniform_floats(2, count, -1, 1);
  const std::vector<float> z = slate::kernels::uniform_floats(3, count, -1, 1);
  const Point from{0.25f, -0.5f, 0.125f};

  DeviceBuffer<float> device_x(x), device_y(y), device_z(z);
  DeviceBuffer<std::uint64_t> keys(count);
  std::vector<DeviceBuffer<std::uint64_t>> levels;
  for (unsigned blocks = blocks_for(count, kSorted);;
       blocks = blocks_for(blocks * kNearest, kSorted)) {
    levels.emplace_back(std::size_t{blocks} * kNearest);
    if (blocks == 1) break;
  }
  run.time([&] {
    measure_distances<<<blocks_for(count, 256), 256>>>(device_x.data(), device_y.data(),
                                                       device_z.data(), keys.data(), from, count);
    DeviceBuffer<std::uint64_t>* candidates = &keys;
    for (DeviceBuffer<std::uint64_t>& level : levels) {
      const auto left = static_cast<unsigned>(candidates->size());
      keep_nearest<<<blocks_for(left, kSorted), kThreads>>>(candidates->data(), level.data(), left);
      candidates = &level;
    }
  });
  const std::vector<std::uint64_t> nearest = levels.back().download();

  run.add_output(nearest);
  if (!run.wants_check()) return;
  std::vector<double> distances(count);
  for (unsigned i = 0; i < count; ++i) distances[i] = squared_distance(x, y, z, from, i);
  check(run, nearest, std::move(distances));
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "nearest_neighbours",
                                      .summary = "The 64 points that are nearest to one",
                                      .size_meaning = "points in space",
                                      .default_size = 150'000,
                                      .max_size = 1u << 30},
                                     argc, argv, run);
}
