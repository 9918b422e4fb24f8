// Reads a large array once, 16 bytes at a time, in a grid-stride loop; every thread writes the sum
// of what it read. Four reads of a thread are under way at once, so that few SMs saturate the
// memory. Integers, exact.
#include <algorithm>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;
constexpr unsigned kReadsPerThread = 8;
constexpr unsigned kMaxBlocks = 8192;

}  // namespace

__global__ void stream_read(const uint4* __restrict__ vectors, unsigned* __restrict__ sums,
                            std::uint64_t count) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned stride = gridDim.x * blockDim.x;
  unsigned sum = 0;
  std::uint64_t i = thread;
  for (; i + 3 * std::uint64_t{stride} < count; i += 4 * std::uint64_t{stride}) {
    const uint4 a = vectors[i];
    const uint4 b = vectors[i + stride];
    const uint4 c = vectors[i + 2 * std::uint64_t{stride}];
    const uint4 d = vectors[i + 3 * std::uint64_t{stride}];
    sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
    sum += c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
  }
  for (; i < count; i += stride) {
    const uint4 v = vectors[i];
    sum += v.x + v.y + v.z + v.w;
  }
  sums[thread] = sum;
}

namespace {

void run(Run& run) {
  const std::uint64_t count = run.size();
  std::vector<uint4> vectors(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t low = slate::kernels::mix(1, i), high = slate::kernels::mix(2, i);
    vectors[i] = uint4{static_cast<unsigned>(low), static_cast<unsigned>(low >> 32),
                       static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)};
  }
  const unsigned blocks = std::min(blocks_for(count, kThreads * kReadsPerThread), kMaxBlocks);
  const std::size_t threads = std::size_t{blocks} * kThreads;

  DeviceBuffer<uint4> device_vectors(vectors);
  DeviceBuffer<unsigned> device_sums(threads);
  run.time(
      [&] { stream_read<<<blocks, kThreads>>>(device_vectors.data(), device_sums.data(), count); });
  const std::vector<unsigned> sums = device_sums.download();

  run.add_output(sums);
  if (!run.wants_check()) return;
  run.for_sample(threads, 1 << 16, [&](std::uint64_t thread) {
    unsigned wanted = 0;
    for (std::uint64_t i = thread; i < count; i += threads) {
      wanted += vectors[i].x + vectors[i].y + vectors[i].z + vectors[i].w;
    }
    run.compare_exact(sums[thread], wanted);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "stream_read",
                                      .summary = "Streaming read with a sum for each thread",
                                      .size_meaning = "vectors of 16 bytes",
                                      .default_size = 1 << 18,
                                      .max_size = std::uint64_t{1} << 32},
                                     argc, argv, run);
}
