// Dynamic parallelism: kernels that launch kernels, again and again without a wait, so that what a
// launch has launched must have ended before the next one begins.
#include <cstdio>
#include <vector>

constexpr unsigned kCount = 4096;
constexpr unsigned kLaunches = 200;

__global__ void add(unsigned* values, unsigned step) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + step;
}

// Behind everything that its launcher has launched.
__global__ void sum(const unsigned* values, unsigned* sums, unsigned step) {
  unsigned own = 0;
  for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x) own += values[i];
  atomicAdd(&sums[step], own);
}

__global__ void parent(unsigned* values, unsigned* sums, unsigned step) {
  add<<<kCount / 256, 256>>>(values, step);
  sum<<<1, 256, 0, cudaStreamTailLaunch>>>(values, sums, step);
}

// Launches itself behind itself, until the count is down.
__global__ void countdown(unsigned* steps, unsigned left) {
  ++*steps;
  if (left > 1) countdown<<<1, 1, 0, cudaStreamTailLaunch>>>(steps, left - 1);
}

__global__ void scatter(unsigned* values, unsigned step) {
  add<<<kCount / 256, 256, 0, cudaStreamFireAndForget>>>(values, step);
}

__global__ void add_one(unsigned* total) {
  atomicAdd(total, 1);
}

__global__ void fan_out(unsigned* total, unsigned count) {
  for (unsigned i = 0; i < count; ++i) add_one<<<1, 1, 0, cudaStreamFireAndForget>>>(total);
}

static unsigned wrong_values(const std::vector<unsigned>& values, unsigned expected) {
  unsigned wrong = 0;
  for (const unsigned value : values) wrong += value != expected;
  return wrong;
}

int main() {
  unsigned *values = nullptr, *sums = nullptr, *steps = nullptr;
  cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192);
  cudaMalloc(&values, kCount * sizeof(unsigned));
  cudaMalloc(&sums, kLaunches * sizeof(unsigned));
  cudaMalloc(&steps, sizeof(unsigned));
  cudaMemset(values, 0, kCount * sizeof(unsigned));
  cudaMemset(sums, 0, kLaunches * sizeof(unsigned));
  cudaMemset(steps, 0, sizeof(unsigned));

  for (unsigned step = 0; step < kLaunches; ++step) parent<<<1, 1>>>(values, sums, step);
  std::vector<unsigned> found(kCount), found_sums(kLaunches);
  cudaMemcpy(found.data(), values, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost);
  cudaMemcpy(found_sums.data(), sums, kLaunches * sizeof(unsigned), cudaMemcpyDeviceToHost);
  unsigned expected = 0, wrong_sums = 0;
  for (unsigned step = 0; step < kLaunches; ++step) {
    expected = expected * 3 + step;
    wrong_sums += found_sums[step] != expected * kCount;
  }
  std::printf("children: %u of %u wrong\n", wrong_values(found, expected), kCount);
  std::printf("tails: %u of %u wrong\n", wrong_sums, kLaunches);

  for (unsigned step = 0; step < kLaunches; ++step) scatter<<<1, 1>>>(values, step);
  cudaMemcpy(found.data(), values, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost);
  for (unsigned step = 0; step < kLaunches; ++step) expected = expected * 3 + step;
  std::printf("fired and forgotten: %u of %u wrong\n", wrong_values(found, expected), kCount);

  for (unsigned i = 0; i < kLaunches; ++i) countdown<<<1, 1>>>(steps, 5);
  unsigned counted = 0;
  cudaMemcpy(&counted, steps, sizeof(counted), cudaMemcpyDeviceToHost);
  std::printf("counted down %u of %u\n", counted, 5 * kLaunches);

  // A copy within the device comes behind all of it, too.
  for (unsigned step = 0; step < kLaunches; ++step) {
    countdown<<<1, 1>>>(steps, 5);
    cudaMemcpyAsync(sums + step, steps, sizeof(unsigned), cudaMemcpyDeviceToDevice);
  }
  cudaMemcpy(found_sums.data(), sums, kLaunches * sizeof(unsigned), cudaMemcpyDeviceToHost);
  unsigned early = 0;
  for (unsigned step = 0; step < kLaunches; ++step)
    early += found_sums[step] != counted + 5 * (step + 1);
  std::printf("copies: %u of %u early\n", early, kLaunches);

  // More at once than there may be without asking.
  cudaMemset(steps, 0, sizeof(unsigned));
  fan_out<<<1, 1>>>(steps, 6000);
  cudaMemcpy(&counted, steps, sizeof(counted), cudaMemcpyDeviceToHost);
  std::printf("fanned out to %u of 6000\n", counted);
  std::printf("%s, ", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
