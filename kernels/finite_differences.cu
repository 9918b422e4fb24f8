// Sound waves in a cube of varying speed: differences of second order in time and eighth order in
// space, four time steps. A block marches along z through its part of the cube, a plane with its
// halo in shared memory and a column in registers; a step overwrites the field before the last.
// Bandwidth, many registers, two barriers a plane.
#include <algorithm>
#include <array>
#include <utility>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr int kRadius = 4;
constexpr int kWidth = 32;
constexpr int kHeight = 8;
constexpr int kDepth = 64;  // planes that a block goes through
constexpr int kSteps = 4;

}  // namespace

/// Of the second derivative along an axis: of the cell itself and of those at each distance.
struct Derivative {
  float at[kRadius + 1];
};

/// Beyond the cube the field is zero.
static __device__ float load(const float* __restrict__ field, int x, int y, int z, int n) {
  const bool inside = x >= 0 && x < n && y >= 0 && y < n && z >= 0 && z < n;
  return inside ? field[(static_cast<std::size_t>(z) * n + y) * n + x] : 0.0f;
}

/// `other` holds the field of the time step before `now`, and gets that of the step behind it.
/// `speed`: the square of the cells that sound passes in a time step.
__global__ void finite_differences(const float* __restrict__ now, float* other,
                                   const float* __restrict__ speed, Derivative derivative, int n) {
  __shared__ float plane[kHeight + 2 * kRadius][kWidth + 2 * kRadius];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int x = static_cast<int>(blockIdx.x) * kWidth + tx;
  const int y = static_cast<int>(blockIdx.y) * kHeight + ty;
  const int first = static_cast<int>(blockIdx.z) * kDepth;
  const int end = min(first + kDepth, n);
  const int px = tx + kRadius;
  const int py = ty + kRadius;

  float column[2 * kRadius + 1];  // column[kRadius + d] is the cell at z + d
#pragma unroll
  for (int d = -kRadius; d <= kRadius; ++d) column[kRadius + d] = load(now, x, y, first + d, n);

  for (int z = first; z < end; ++z) {
    plane[py][px] = column[kRadius];
    if (tx < kRadius) {
      plane[py][px - kRadius] = load(now, x - kRadius, y, z, n);
      plane[py][px + kWidth] = load(now, x + kWidth, y, z, n);
    }
    if (ty < kRadius) {
      plane[py - kRadius][px] = load(now, x, y - kRadius, z, n);
      plane[py + kHeight][px] = load(now, x, y + kHeight, z, n);
    }
    __syncthreads();
    if (x < n && y < n) {
      float laplacian = 3 * __fmul_rn(derivative.at[0], column[kRadius]);
#pragma unroll
      for (int d = 1; d <= kRadius; ++d) {
        const float sides = plane[py][px - d] + plane[py][px + d] + plane[py - d][px] +
                            plane[py + d][px] + column[kRadius - d] + column[kRadius + d];
        laplacian = fmaf(derivative.at[d], sides, laplacian);
      }
      const std::size_t cell = (static_cast<std::size_t>(z) * n + y) * n + x;
      other[cell] = fmaf(speed[cell], laplacian, fmaf(2, column[kRadius], -other[cell]));
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 2 * kRadius; ++d) column[d] = column[d + 1];
    column[2 * kRadius] = load(now, x, y, z + kRadius + 1, n);
  }
}

namespace {

using Corner = std::array<int, 3>;

/// A box of the cube with fields in double precision, stepped on the CPU.
class Box {
 public:
  Box(Corner low, Corner high, int n) : low_(low), high_(high), n_(n) {}

  std::size_t size() const {
    return std::size_t(high_[0] - low_[0]) * (high_[1] - low_[1]) * (high_[2] - low_[2]);
  }
  template <typename Body>
  void for_each(Corner low, Corner high, Body body) const {
    for (int z = low[2]; z < high[2]; ++z) {
      for (int y = low[1]; y < high[1]; ++y) {
        for (int x = low[0]; x < high[0]; ++x) body(Corner{x, y, z});
      }
    }
  }
  template <typename Body>
  void for_each(Body body) const {
    for_each(low_, high_, body);
  }
  bool contains(const Corner& at) const {
    for (int axis = 0; axis < 3; ++axis) {
      if (at[axis] < low_[axis] || at[axis] >= high_[axis]) return false;
    }
    return true;
  }
  std::size_t here(const Corner& at) const {
    const std::size_t row = std::size_t(at[2] - low_[2]) * (high_[1] - low_[1]) + (at[1] - low_[1]);
    return row * (high_[0] - low_[0]) + (at[0] - low_[0]);
  }
  std::size_t in_cube(const Corner& at) const {
    return (std::size_t(at[2]) * n_ + at[1]) * n_ + at[0];
  }
  std::vector<double> part_of(const std::vector<float>& field) const {
    std::vector<double> part(size());
    for_each([&](const Corner& at) { part[here(at)] = field[in_cube(at)]; });
    return part;
  }

 private:
  Corner low_, high_;
  int n_;
};

double laplacian(const Box& box, const std::vector<double>& now, const Derivative& derivative,
                 const Corner& at) {
  double sum = 0;
  for (int axis = 0; axis < 3; ++axis) {
    for (int d = -kRadius; d <= kRadius; ++d) {
      Corner other = at;
      other[axis] += d;
      if (box.contains(other)) sum += double{derivative.at[std::abs(d)]} * now[box.here(other)];
    }
  }
  return sum;
}

struct Fields {
  std::vector<float> before, now, speed;
};

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

/// Steps a box that is larger than what is compared by as much as waves can come from.
void check_box(Run& run, const Fields& start, const std::vector<float>& result,
               const Derivative& derivative, int n, Corner low, Corner high) {
  constexpr int kReach = kRadius * kSteps;
  Corner far_low = low, far_high = high;
  for (int axis = 0; axis < 3; ++axis) {
    far_low[axis] = std::max(low[axis] - kReach, 0);
    far_high[axis] = std::min(high[axis] + kReach, n);
  }
  const Box box(far_low, far_high, n);
  std::vector<double> now = box.part_of(start.now), other = box.part_of(start.before);
  const std::vector<double> speed = box.part_of(start.speed);
  // The weights of a laplacian add up to less than 20, and speeds stay below 0.06, so a step takes
  // errors of `now` at most 3.2 times and those of the step before once. It adds less than 20
  // roundings of what is no more than 3.2 of the one and once the other.
  double error_now = 0, error_other = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double made = 20 * kFloatRounding * (3.2 * largest(now) + largest(other));
    box.for_each([&](const Corner& at) {
      const std::size_t i = box.here(at);
      other[i] = 2 * now[i] - other[i] + speed[i] * laplacian(box, now, derivative, at);
    });
    std::swap(now, other);
    error_other = std::exchange(error_now, 3.2 * error_now + error_other + made);
  }
  box.for_each(low, high, [&](const Corner& at) {
    run.compare(result[box.in_cube(at)], now[box.here(at)], error_now);
  });
}

void run(Run& run) {
  const int n = static_cast<int>(run.size());
  const std::size_t cells = static_cast<std::size_t>(n) * n * n;
  const Derivative derivative{{-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560}};
  const Fields start{slate::kernels::uniform_floats(1, cells, -1, 1),
                     slate::kernels::uniform_floats(2, cells, -1, 1),
                     slate::kernels::uniform_floats(3, cells, 0.01f, 0.06f)};

  DeviceBuffer<float> first_now(start.now), first_before(start.before), speed(start.speed);
  DeviceBuffer<float> even(cells), odd(cells);
  const dim3 grid(blocks_for(n, kWidth), blocks_for(n, kHeight), blocks_for(n, kDepth));
  run.time(
      [&] {
        SLATE_REQUIRE(
            cudaMemcpy(even.data(), first_now.data(), even.bytes(), cudaMemcpyDeviceToDevice));
        SLATE_REQUIRE(
            cudaMemcpy(odd.data(), first_before.data(), odd.bytes(), cudaMemcpyDeviceToDevice));
      },
      [&] {
        for (int step = 0; step < kSteps; ++step) {
          float* const now = step % 2 == 0 ? even.data() : odd.data();
          float* const other = step % 2 == 0 ? odd.data() : even.data();
          finite_differences<<<grid, dim3(kWidth, kHeight)>>>(now, other, speed.data(), derivative,
                                                              n);
        }
      });
  const std::vector<float> result = (kSteps % 2 == 0 ? even : odd).download();

  run.add_output(result);
  if (!run.wants_check()) return;
  constexpr int kBox = 20;
  const std::uint64_t wide = blocks_for(n, kBox);
  run.for_sample(wide * wide * wide, 32, [&](std::uint64_t i) {
    Corner low{}, high{};
    for (int axis = 0; axis < 3; ++axis, i /= wide) {
      low[axis] = static_cast<int>(i % wide) * kBox;
      high[axis] = std::min(low[axis] + kBox, n);
    }
    check_box(run, start, result, derivative, n, low, high);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "finite_differences",
                                      .summary = "Sound waves in a cube, eighth order in space",
                                      .size_meaning = "cells along each edge of the cube",
                                      .default_size = 40,
                                      .max_size = 1024},
                                     argc, argv, run);
}
