// sum = left + right, element by element, on a stream of its own with asynchronous copies: bound by
// memory bandwidth, exact.
#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;

}  // namespace

__global__ void vector_add(const float* __restrict__ left, const float* __restrict__ right,
                           float* __restrict__ sum, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = left[i] + right[i];
}

namespace {

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  const std::vector<float> left = slate::kernels::uniform_floats(1, count, -1, 1);
  const std::vector<float> right = slate::kernels::uniform_floats(2, count, -1, 1);
  std::vector<float> sum(count);

  cudaStream_t stream = nullptr;
  SLATE_REQUIRE(cudaStreamCreate(&stream));
  {
    DeviceBuffer<float> device_left(count), device_right(count), device_sum(count);
    const std::size_t bytes = device_sum.bytes();
    SLATE_REQUIRE(
        cudaMemcpyAsync(device_left.data(), left.data(), bytes, cudaMemcpyHostToDevice, stream));
    SLATE_REQUIRE(
        cudaMemcpyAsync(device_right.data(), right.data(), bytes, cudaMemcpyHostToDevice, stream));
    run.time(
        [&] {
          vector_add<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(
              device_left.data(), device_right.data(), device_sum.data(), count);
        },
        stream);
    SLATE_REQUIRE(
        cudaMemcpyAsync(sum.data(), device_sum.data(), bytes, cudaMemcpyDeviceToHost, stream));
    SLATE_REQUIRE(cudaStreamSynchronize(stream));
  }
  SLATE_REQUIRE(cudaStreamDestroy(stream));

  run.add_output(sum);
  if (!run.wants_check()) return;
  // One addition is rounded correctly on both sides, so the bits agree.
  run.for_sample(count, 1 << 24,
                 [&](std::uint64_t i) { run.compare_exact(sum[i], left[i] + right[i]); });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "vector_add",
                                      .summary = "Element-wise sum of two float vectors",
                                      .size_meaning = "elements of each vector",
                                      .default_size = 1 << 18,
                                      .max_size = 1u << 31},
                                     argc, argv, run);
}
