// Prices of European call and put options by the Black-Scholes formula, one option a thread: some
// arithmetic with transcendental functions, some bandwidth. The cumulative normal distribution is
// the polynomial 26.2.17 of Abramowitz and Stegun (absolute error below 7.5e-8).
#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::Run;

constexpr unsigned kThreads = 256;

}  // namespace

struct Market {
  float rate;
  float volatility;
};

static __device__ float normal_cdf(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  const float polynomial =
      k * (0.319381530f +
           k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * expf(-0.5f * d * d) * polynomial;
  return d > 0 ? 1.0f - tail : tail;
}

__global__ void black_scholes(const float* __restrict__ spot, const float* __restrict__ strike,
                              const float* __restrict__ years, float* __restrict__ call,
                              float* __restrict__ put, Market market, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float s = spot[i];
  const float x = strike[i];
  const float t = years[i];
  const float spread = market.volatility * sqrtf(t);
  const float drift = (market.rate + 0.5f * market.volatility * market.volatility) * t;
  const float d1 = (logf(s / x) + drift) / spread;
  const float d2 = d1 - spread;
  const float n1 = normal_cdf(d1);
  const float n2 = normal_cdf(d2);
  const float discounted = x * expf(-market.rate * t);
  call[i] = s * n1 - discounted * n2;
  put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

namespace {

double exact_cdf(double d) {
  return 0.5 * std::erfc(-d * 0.70710678118654752440);
}

void run(Run& run) {
  const auto count = static_cast<unsigned>(run.size());
  const Market market{.rate = 0.02f, .volatility = 0.30f};
  const std::vector<float> spot = slate::kernels::uniform_floats(1, count, 5, 30);
  const std::vector<float> strike = slate::kernels::uniform_floats(2, count, 1, 100);
  const std::vector<float> years = slate::kernels::uniform_floats(3, count, 0.25f, 10);

  DeviceBuffer<float> device_spot(spot), device_strike(strike), device_years(years);
  DeviceBuffer<float> device_call(count), device_put(count);
  run.time([&] {
    black_scholes<<<blocks_for(count, kThreads), kThreads>>>(
        device_spot.data(), device_strike.data(), device_years.data(), device_call.data(),
        device_put.data(), market, count);
  });
  const std::vector<float> call = device_call.download();
  const std::vector<float> put = device_put.download();

  run.add_output(call);
  run.add_output(put);
  if (!run.wants_check()) return;
  run.for_sample(count, 1 << 20, [&](std::uint64_t i) {
    const double s = spot[i], x = strike[i], t = years[i];
    const double rate = market.rate, volatility = market.volatility;
    const double spread = volatility * std::sqrt(t);
    const double d1 = (std::log(s / x) + (rate + 0.5 * volatility * volatility) * t) / spread;
    const double n1 = exact_cdf(d1);
    const double n2 = exact_cdf(d1 - spread);
    const double discounted = x * std::exp(-rate * t);
    // 7.5e-8 from the polynomial and a dozen roundings of numbers below 1, times the two prices.
    const double tolerance = 1e-6 * (s + x);
    run.compare(call[i], s * n1 - discounted * n2, tolerance);
    run.compare(put[i], discounted * (1 - n2) - s * (1 - n1), tolerance);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "black_scholes",
                                      .summary = "Black-Scholes prices of calls and puts",
                                      .size_meaning = "options",
                                      .default_size = 1 << 16,
                                      .max_size = 1u << 31},
                                     argc, argv, run);
}
