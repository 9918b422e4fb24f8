// Four chains of fused multiply-adds a thread, 4096 in all: bound by arithmetic, one store. Exact,
// as the CPU's fma rounds in the same way.
#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kIterations = 1024;

__host__ __device__ float chains(float start) {
  float a = start;
  float b = start + 0.25f;
  float c = start + 0.5f;
  float d = start + 0.75f;
  for (unsigned i = 0; i < kIterations; ++i) {
    a = fmaf(a, 0.9990234375f, 0.0011f);
    b = fmaf(b, -0.998046875f, 0.0012f);
    c = fmaf(c, 0.99609375f, 0.0013f);
    d = fmaf(d, -0.9921875f, 0.0014f);
  }
  return (a + b) + (c + d);
}

}  // namespace

__global__ void fma_loop(float* results, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) results[i] = chains(static_cast<float>(i % 8192) * 0x1p-13f);
}

namespace {

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  DeviceBuffer<float> device_results(count);
  run.time(
      [&] { fma_loop<<<blocks_for(count, kThreads), kThreads>>>(device_results.data(), count); });
  const std::vector<float> results = device_results.download();

  run.add_output(results);
  if (!run.wants_check()) return;
  run.for_sample(count, 4096, [&](std::uint64_t i) {
    run.compare_exact(results[i], chains(static_cast<float>(i % 8192) * 0x1p-13f));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "fma_loop",
                                      .summary = "Chains of fused multiply-adds",
                                      .size_meaning = "threads, of 4096 multiply-adds each",
                                      .default_size = 2048,
                                      .max_size = 1u << 31},
                                     argc, argv, run);
}
