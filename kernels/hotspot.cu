// Heat in a chip: an explicit five-point stencil with a source of power in every cell, four time
// steps a launch. A block steps a tile with a halo as deep as its steps, so that tiles overlap and
// what is wrong at a tile's edge never reaches the cells that it writes. Shared memory, a barrier a
// step, blocks of 1024 threads of which the outer ones only help.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr int kEdge = 32;                   // of a tile with its halo, and of a block of threads
constexpr int kSteps = 4;                   // of one launch, and the halo's depth
constexpr int kInner = kEdge - 2 * kSteps;  // of what a tile writes
constexpr int kLaunches = 4;

}  // namespace

/// What a cell gains in a time step, in kelvins: by each watt of power, and by each kelvin of
/// difference to its neighbours along an axis (the sum of both) and to the air.
struct Chip {
  float per_watt, along_x, along_y, to_air;
  float air;  // its temperature
};

/// Beyond the edge of the chip every cell finds its own temperature: no heat flows there.
__global__ void hotspot(const float* __restrict__ before, const float* __restrict__ power,
                        float* __restrict__ after, Chip chip, int n) {
  __shared__ float tiles[2][kEdge][kEdge];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int left = static_cast<int>(blockIdx.x) * kInner - kSteps;
  const int top = static_cast<int>(blockIdx.y) * kInner - kSteps;
  const int x = left + tx;
  const int y = top + ty;
  const bool on_chip = x >= 0 && x < n && y >= 0 && y < n;
  const std::size_t cell = on_chip ? static_cast<std::size_t>(y) * n + x : 0;
  const int west = max(tx - 1, max(0, -left));
  const int east = min(tx + 1, min(kEdge, n - left) - 1);
  const int north = max(ty - 1, max(0, -top));
  const int south = min(ty + 1, min(kEdge, n - top) - 1);

  const float watts = power[cell];
  float t = before[cell];
  tiles[0][ty][tx] = t;
  for (int step = 0; step < kSteps; ++step) {
    __syncthreads();
    const auto& now = tiles[step % 2];
    const float beside = now[ty][west] + now[ty][east];
    const float above_below = now[north][tx] + now[south][tx];
    // Fused multiply-adds by name, so that every compiler gives the same bits.
    t = fmaf(chip.along_x, fmaf(-2, now[ty][tx], beside),
             fmaf(chip.along_y, fmaf(-2, now[ty][tx], above_below),
                  fmaf(chip.to_air, chip.air - t, fmaf(chip.per_watt, watts, t))));
    tiles[(step + 1) % 2][ty][tx] = t;
  }
  const bool inner = tx >= kSteps && tx < kEdge - kSteps && ty >= kSteps && ty < kEdge - kSteps;
  if (on_chip && inner) after[cell] = t;
}

namespace {

/// A rectangle of the chip that a check steps on the CPU.
struct Window {
  int left, top, right, bottom;
};

/// Steps the window and as many cells around it as heat can come from, in double precision, and
/// compares what is in it. Heat goes one cell a step, so what the cells at the rim of the larger
/// rectangle lack does not arrive.
void check_window(Run& run, const std::vector<float>& before, const std::vector<float>& power,
                  const std::vector<float>& after, const Chip& chip, int n, Window window) {
  constexpr int kReach = kSteps * kLaunches;
  const Window area{std::max(window.left - kReach, 0), std::max(window.top - kReach, 0),
                    std::min(window.right + kReach, n), std::min(window.bottom + kReach, n)};
  const int width = area.right - area.left;
  const int height = area.bottom - area.top;
  const auto global = [&](int x, int y) {
    return static_cast<std::size_t>(area.top + y) * n + (area.left + x);
  };
  std::vector<double> now(static_cast<std::size_t>(width) * height);
  const auto at = [&](int x, int y) {
    return static_cast<std::size_t>(std::clamp(y, 0, height - 1)) * width +
           std::clamp(x, 0, width - 1);
  };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) now[at(x, y)] = before[global(x, y)];
  }
  for (int step = 0; step < kReach; ++step) {
    std::vector<double> next(now.size());
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double t = now[at(x, y)];
        next[at(x, y)] = t + double{chip.per_watt} * power[global(x, y)] +
                         double{chip.along_x} * (now[at(x - 1, y)] + now[at(x + 1, y)] - 2 * t) +
                         double{chip.along_y} * (now[at(x, y - 1)] + now[at(x, y + 1)] - 2 * t) +
                         double{chip.to_air} * (double{chip.air} - t);
      }
    }
    now = std::move(next);
  }
  // A step averages temperatures, so it does not magnify earlier errors. It adds four roundings of
  // a temperature, and those of differences, which the small rates take to less than one more.
  const double tolerance = 5.0 * kReach * kFloatRounding;
  for (int y = window.top; y < window.bottom; ++y) {
    for (int x = window.left; x < window.right; ++x) {
      const double wanted = now[at(x - area.left, y - area.top)];
      run.compare(after[static_cast<std::size_t>(y) * n + x], wanted, tolerance * 128);
    }
  }
}

void run(Run& run) {
  const int n = static_cast<int>(run.size());
  const std::size_t cells = static_cast<std::size_t>(n) * n;
  const Chip chip{0.01f, 0.125f, 0.0625f, 0.002f, 25.0f};
  // All temperatures stay below 128: power heats a cell by less than 0.05 a step.
  const std::vector<float> before = slate::kernels::uniform_floats(1, cells, 30, 90);
  const std::vector<float> power = slate::kernels::uniform_floats(2, cells, 0, 5);

  DeviceBuffer<float> device_before(before), device_power(power);
  DeviceBuffer<float> odd(cells), even(cells);
  const dim3 grid(blocks_for(n, kInner), blocks_for(n, kInner));
  const dim3 block(kEdge, kEdge);
  run.time([&] {
    float* from = device_before.data();
    for (int launch = 0; launch < kLaunches; ++launch) {
      float* const to = launch % 2 == 0 ? odd.data() : even.data();
      hotspot<<<grid, block>>>(from, device_power.data(), to, chip, n);
      from = to;
    }
  });
  const std::vector<float> after = (kLaunches % 2 == 0 ? even : odd).download();

  run.add_output(after);
  if (!run.wants_check()) return;
  constexpr int kWindow = 64;
  const std::uint64_t windows_wide = blocks_for(n, kWindow);
  run.for_sample(windows_wide * windows_wide, 128, [&](std::uint64_t i) {
    const int left = static_cast<int>(i % windows_wide) * kWindow;
    const int top = static_cast<int>(i / windows_wide) * kWindow;
    check_window(run, before, power, after, chip, n,
                 {left, top, std::min(left + kWindow, n), std::min(top + kWindow, n)});
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "hotspot",
                                      .summary = "Heat in a chip, four time steps a launch",
                                      .size_meaning = "cells along each edge of the chip",
                                      .default_size = 200,
                                      .max_size = 32768},
                                     argc, argv, run);
}
