// Counts of the 256 values of a byte stream: atomics on a histogram in shared memory for each
// block, then one on global memory for each bin. Integers, so the order of the atomics does not
// matter. Small values are more frequent, for contention.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kBins = 256;
constexpr unsigned kThreads = 256;
constexpr unsigned kWordsPerThread = 16;
constexpr unsigned kMaxBlocks = 2048;

}  // namespace

/// `words` holds four samples each; the last one may hold fewer, in its low bytes.
__global__ void histogram(const std::uint32_t* __restrict__ words, unsigned* __restrict__ bins,
                          std::uint64_t samples) {
  __shared__ unsigned local[kBins];
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) local[bin] = 0;
  __syncthreads();
  const std::uint64_t full = samples / 4;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < full;
       i += stride) {
    const std::uint32_t word = words[i];
    atomicAdd(&local[word & 255], 1u);
    atomicAdd(&local[word >> 8 & 255], 1u);
    atomicAdd(&local[word >> 16 & 255], 1u);
    atomicAdd(&local[word >> 24], 1u);
  }
  if (blockIdx.x == 0 && threadIdx.x < samples % 4) {
    atomicAdd(&local[words[full] >> (8 * threadIdx.x) & 255], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
    if (local[bin] != 0) atomicAdd(&bins[bin], local[bin]);
  }
}

namespace {

/// Four samples, each the product of two uniform bytes.
std::uint32_t sample_word(std::uint64_t index) {
  const std::uint64_t bits = slate::kernels::mix(1, index);
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t product = (bits >> (16 * i) & 255) * (bits >> (16 * i + 8) & 255);
    word |= (product >> 8) << (8 * i);
  }
  return word;
}

void run(Run& run) {
  const std::uint64_t samples = run.size();
  std::vector<std::uint32_t> words((samples + 3) / 4);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = sample_word(i);
  const unsigned blocks =
      std::min(blocks_for(words.size(), kThreads * kWordsPerThread), kMaxBlocks);

  DeviceBuffer<std::uint32_t> device_words(words);
  DeviceBuffer<unsigned> device_bins(kBins);
  run.time(
      [&] { SLATE_REQUIRE(cudaMemset(device_bins.data(), 0, device_bins.bytes())); },
      [&] { histogram<<<blocks, kThreads>>>(device_words.data(), device_bins.data(), samples); });
  const std::vector<unsigned> bins = device_bins.download();

  run.add_output(bins);
  if (!run.wants_check()) return;
  // No sample tells anything about a count: the whole stream is counted, at about a second a
  // gigabyte.
  std::array<unsigned, kBins> wanted{};
  for (std::uint64_t i = 0; i < samples; ++i) ++wanted[words[i / 4] >> (8 * (i % 4)) & 255];
  for (unsigned bin = 0; bin < kBins; ++bin) run.compare_exact(bins[bin], wanted[bin]);
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "histogram",
                                      .summary = "Histogram of a byte stream by atomics",
                                      .size_meaning = "samples of one byte",
                                      .default_size = 1 << 20,
                                      .max_size = (std::uint64_t{1} << 32) - 1},
                                     argc, argv, run);
}
