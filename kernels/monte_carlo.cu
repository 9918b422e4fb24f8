// Prices of Asian options (on the average over eight dates) by simulation: a block an option, 4096
// paths each. Random numbers are Philox 4x32-10's (Salmon, Moraes, Dror, Shaw: Parallel random
// numbers: as easy as 1, 2, 3; SC 2011), a function of the option, the path and the date, so the
// result does not depend on who computes what. Arithmetic and transcendental functions, hardly any
// memory.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;
using slate::kernels::uniform;

constexpr unsigned kThreads = 256;
constexpr unsigned kPaths = 4096;  // of an option
constexpr unsigned kDates = 8;     // a multiple of the four numbers that Philox gives at a time
constexpr std::uint32_t kSeed = 2011;

struct Words {
  std::uint32_t at[4];
};

/// Ten rounds: each multiplies two words by constants, mixes the halves of the products with the
/// other words and a key, and swaps.
constexpr __host__ __device__ Words philox(Words counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53u} * counter.at[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57u} * counter.at[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter.at[1] ^ key0,
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter.at[3] ^ key1,
               static_cast<std::uint32_t>(left)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The known answer for zeros.
constexpr Words kAnswer = philox({}, 0, 0);
static_assert(kAnswer.at[0] == 0x6627e8d5u && kAnswer.at[1] == 0xe169c58du &&
              kAnswer.at[2] == 0xbc57ac4cu && kAnswer.at[3] == 0x9b00dbd8u);

}  // namespace

struct Option {
  float spot, strike;
  float drift;       // of the price between two dates, relative
  float volatility;  // the same
  float discount;    // of the payment
};

/// Two normal numbers from two words, by Box and Muller. Both uniform ones are exact in floats, the
/// first above 0.
static __device__ float2 normals(std::uint32_t first, std::uint32_t second) {
  const float radius = sqrtf(-2 * logf((static_cast<float>(first >> 8) + 1) * 0x1p-24f));
  float sine, cosine;
  sincospif(static_cast<float>(second >> 8) * 0x1p-23f, &sine, &cosine);
  return make_float2(radius * cosine, radius * sine);
}

/// The mean of the price over the dates of a path.
static __device__ float average_price(const Option& option, unsigned number, unsigned path) {
  float price = option.spot;
  float sum = 0;
  for (unsigned date = 0; date < kDates; date += 4) {
    const Words words = philox({{path, date, number, 0}}, kSeed, 0);
    const float2 low = normals(words.at[0], words.at[1]);
    const float2 high = normals(words.at[2], words.at[3]);
    const float all[4] = {low.x, low.y, high.x, high.y};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      price = fmaf(price, fmaf(option.volatility, all[k], option.drift), price);
      sum += price;
    }
  }
  return sum * (1.0f / kDates);
}

/// Block b prices option b.
__global__ void monte_carlo(const Option* __restrict__ options, double* __restrict__ prices) {
  __shared__ double sums[kThreads];
  const unsigned t = threadIdx.x;
  const Option option = options[blockIdx.x];
  double own = 0;
  for (unsigned path = t; path < kPaths; path += kThreads) {
    const float gain = __fsub_rn(average_price(option, blockIdx.x, path), option.strike);
    own += double{fmaxf(gain, 0)};
  }
  sums[t] = own;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (t == 0) prices[blockIdx.x] = option.discount * sums[0] / kPaths;
}

namespace {

std::vector<Option> make_options(std::size_t count) {
  std::vector<Option> options(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double years = uniform(1, i, 0.25f, 2);
    const double rate = uniform(2, i, 0.01f, 0.05f);
    const float spot = uniform(3, i, 20, 100);
    options[i] = {spot, spot * uniform(4, i, 0.8f, 1.2f), static_cast<float>(rate * years / kDates),
                  static_cast<float>(uniform(5, i, 0.1f, 0.4f) * std::sqrt(years / kDates)),
                  static_cast<float>(std::exp(-rate * years))};
  }
  return options;
}

/// The same paths in double precision, by the C++ library's functions. Functions are off by two
/// roundings at most, so normal numbers by eight; a date moves a price by less than its own
/// size, so it adds less than 11 roundings of it, and the averages 9. The differences at the strike
/// and the doubles behind it add one more.
void check_option(Run& run, const Option& option, double price, std::uint32_t number) {
  double payments = 0;
  double averages = 0;
  for (std::uint32_t path = 0; path < kPaths; ++path) {
    double now = option.spot;
    double sum = 0;
    for (std::uint32_t date = 0; date < kDates; ++date) {
      const Words words = philox({{path, date & ~3u, number, 0}}, kSeed, 0);
      const std::uint32_t pair = date % 4 / 2 * 2;
      const double radius = std::sqrt(-2 * std::log(((words.at[pair] >> 8) + 1) * 0x1p-24));
      const double angle = 2 * 3.14159265358979323846 * ((words.at[pair + 1] >> 8) * 0x1p-24);
      const double normal = radius * (date % 2 == 0 ? std::cos(angle) : std::sin(angle));
      now *= 1 + option.drift + option.volatility * normal;
      sum += now;
    }
    payments += std::max(sum / kDates - option.strike, 0.0);
    averages += sum / kDates;
  }
  const double tolerance = (11 * kDates + 10) * kFloatRounding * averages / kPaths;
  run.compare(price, option.discount * payments / kPaths, tolerance);
}

void run(Run& run) {
  const std::vector<Option> options = make_options(run.size());
  DeviceBuffer<Option> device_options(options);
  DeviceBuffer<double> device_prices(options.size());
  run.time([&] {
    monte_carlo<<<static_cast<unsigned>(options.size()), kThreads>>>(device_options.data(),
                                                                     device_prices.data());
  });
  const std::vector<double> prices = device_prices.download();

  run.add_output(prices);
  if (!run.wants_check()) return;
  run.for_sample(options.size(), 256, [&](std::uint64_t i) {
    check_option(run, options[i], prices[i], static_cast<std::uint32_t>(i));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "monte_carlo",
                                      .summary = "Asian options by simulation, a block an option",
                                      .size_meaning = "options",
                                      .default_size = 24,
                                      .max_size = 1u << 24},
                                     argc, argv, run);
}
