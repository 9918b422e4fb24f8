// Gravity between all pairs of bodies, one step in time: a thread a body, the others by tiles
// through shared memory. Compute-bound with reciprocal square roots, which are correctly rounded
// here, so that every machine gives the same bits.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;
using slate::kernels::uniform;

constexpr unsigned kThreads = 256;
constexpr float kSoftening = 0.01f;  // added to squared distances
constexpr float kStep = 0.001f;

}  // namespace

/// x, y, z are the body's place in `bodies` (w: its mass), its speed in `velocities` (w unused).
__global__ void nbody(const float4* __restrict__ bodies, const float4* __restrict__ velocities,
                      float4* __restrict__ moved, float4* __restrict__ changed, unsigned count) {
  __shared__ float4 tile[kThreads];
  const unsigned t = threadIdx.x;
  const unsigned i = blockIdx.x * kThreads + t;
  const float4 own = bodies[min(i, count - 1)];
  float ax = 0, ay = 0, az = 0;
  for (unsigned base = 0; base < count; base += kThreads) {
    // What is beyond the last body has no mass.
    tile[t] = base + t < count ? bodies[base + t] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (unsigned k = 0; k < kThreads; ++k) {
      const float4 other = tile[k];
      const float dx = other.x - own.x;
      const float dy = other.y - own.y;
      const float dz = other.z - own.z;
      const float squared = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, kSoftening)));
      const float inverse = __frsqrt_rn(squared);
      const float pull = other.w * inverse * inverse * inverse;
      ax = fmaf(dx, pull, ax);
      ay = fmaf(dy, pull, ay);
      az = fmaf(dz, pull, az);
    }
    __syncthreads();
  }
  if (i >= count) return;
  float4 velocity = velocities[i];
  velocity.x = fmaf(kStep, ax, velocity.x);
  velocity.y = fmaf(kStep, ay, velocity.y);
  velocity.z = fmaf(kStep, az, velocity.z);
  changed[i] = velocity;
  moved[i] = make_float4(fmaf(kStep, velocity.x, own.x), fmaf(kStep, velocity.y, own.y),
                         fmaf(kStep, velocity.z, own.z), own.w);
}

namespace {

std::vector<float4> make_vectors(std::uint64_t seed, std::size_t count, float reach, float w) {
  std::vector<float4> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = {uniform(seed, 4 * i, -reach, reach), uniform(seed, 4 * i + 1, -reach, reach),
                 uniform(seed, 4 * i + 2, -reach, reach), uniform(seed, 4 * i + 3, 0.5f * w, w)};
  }
  return values;
}

struct State {
  std::vector<float4> bodies, velocities;
};

/// A pull has at most 20 roundings: seven in the squared distance, whose -3/2 power is taken, and
/// nine in the products. Its sum rounds once a term; the speed and the place once each.
void check_body(Run& run, const State& before, const State& after, std::size_t i) {
  const auto coordinates = [](const float4& v) { return std::array<double, 3>{v.x, v.y, v.z}; };
  const auto own = coordinates(before.bodies[i]);
  std::array<double, 3> pull{}, magnitude{};
  for (const float4& body : before.bodies) {
    const auto other = coordinates(body);
    double squared = kSoftening;
    for (int k = 0; k < 3; ++k) squared += (other[k] - own[k]) * (other[k] - own[k]);
    for (int k = 0; k < 3; ++k) {
      const double term = double{body.w} * (other[k] - own[k]) / (squared * std::sqrt(squared));
      pull[k] += term;
      magnitude[k] += std::fabs(term);
    }
  }
  const double roundings = static_cast<double>(before.bodies.size() + 20) * kFloatRounding;
  const auto speed = coordinates(before.velocities[i]);
  const auto new_speed = coordinates(after.velocities[i]);
  const auto place = coordinates(after.bodies[i]);
  for (int k = 0; k < 3; ++k) {
    const double wanted = speed[k] + kStep * pull[k];
    const double tolerance =
        kStep * roundings * magnitude[k] + 2 * kFloatRounding * std::fabs(wanted);
    run.compare(new_speed[k], wanted, tolerance);
    const double wanted_place = own[k] + kStep * wanted;
    run.compare(place[k], wanted_place,
                kStep * tolerance + 2 * kFloatRounding * std::fabs(wanted_place));
  }
  run.compare_exact(after.bodies[i].w, before.bodies[i].w);
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  const State before{make_vectors(1, count, 1, 1.0f / static_cast<float>(count)),
                     make_vectors(2, count, 0.1f, 0)};
  DeviceBuffer<float4> bodies(before.bodies), velocities(before.velocities);
  DeviceBuffer<float4> moved(count), changed(count);
  run.time([&] {
    nbody<<<blocks_for(count, kThreads), kThreads>>>(bodies.data(), velocities.data(), moved.data(),
                                                     changed.data(), count);
  });
  const State after{moved.download(), changed.download()};

  run.add_output(after.bodies);
  run.add_output(after.velocities);
  if (!run.wants_check()) return;
  run.for_sample(count, std::max<std::uint64_t>(64, (1 << 25) / count),
                 [&](std::uint64_t i) { check_body(run, before, after, i); });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "nbody",
                                      .summary = "Gravity between all pairs of bodies, one step",
                                      .size_meaning = "bodies",
                                      .default_size = 1000,
                                      .max_size = 1u << 24},
                                     argc, argv, run);
}
