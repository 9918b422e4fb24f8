// The model's arithmetic, and the exhaustive sweep that adaptive is held against.
#include "tests/unit/scheduler/gpu_model.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "scheduler/search.h"

namespace slate::scheduler::test {
namespace {

constexpr std::array kScaledAt = {0.0, 8.0, 16.0, 32.0, 48.0, 64.0, 80.0, 96.0, 112.0, 132.0};

/// Bandwidth to everybody alike until each has what it can use.
void share_bandwidth(std::span<const Occupant> occupants, std::span<double> rates) {
  std::vector<std::pair<double, std::size_t>> wants;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    wants.emplace_back(rates[i] * occupants[i].kernel->bandwidth, i);
  }
  std::ranges::sort(wants);
  double left = 1;
  for (std::size_t k = 0; k < wants.size(); ++k) {
    const auto [want, i] = wants[k];
    const double got = std::min(want, left / static_cast<double>(wants.size() - k));
    left -= got;
    if (got < want) rates[i] *= got / want;
  }
}

}  // namespace

double ModelKernel::scale(double sms) const {
  const auto above = std::ranges::lower_bound(kScaledAt, sms);
  if (above == kScaledAt.begin()) return 0;
  if (above == kScaledAt.end()) return scaling.back();
  const auto i = static_cast<std::size_t>(above - kScaledAt.begin());
  const double low = i == 1 ? 0 : scaling[i - 2];
  return low +
         (scaling[i - 1] - low) * (sms - kScaledAt[i - 1]) / (kScaledAt[i] - kScaledAt[i - 1]);
}

Machine h200() {
  return {
      .sm_count = 132, .units = 17, .sms_per_unit = 8, .peak_gflops = 60'000, .peak_gbytes = 4'800};
}

const std::vector<ModelKernel>& kernels() {
  static const std::vector<ModelKernel> all = {
      {.name = "BS",
       .native_ms = 0.187,
       .worker = 0.95,
       .scaling = {.08, .15, .30, .44, .59, .72, .86, .96, 1},
       .bandwidth = 0.75,
       .mix = 0.04,
       .blocks = 156'250},
      {.name = "GS",
       .native_ms = 2.53,
       .worker = 2.0,
       .scaling = {.22, .42, .70, .83, .92, .98, 1.01, 1.05, 1},
       .bandwidth = 0.3,
       .blocks = 4'194'304,
       .wave = 4224},
      {.name = "MM",
       .native_ms = 15.4,
       .worker = 1.01,
       .scaling = {.06, .12, .24, .37, .50, .61, .74, .87, 1},
       .bandwidth = 0.25,
       .mix = 0.05,
       .blocks = 16'384,
       .wave = 264},
      {.name = "TR",
       .native_ms = 0.595,
       .worker = 1.02,
       .scaling = {.13, .26, .47, .64, .77, .85, .90, .95, 1},
       .bandwidth = 0.85,
       .blocks = 262'144},
      {.name = "ST",
       .native_ms = 0.23,
       .worker = 0.98,
       .scaling = {.30, .57, .91, 1, 1, 1, 1, 1, 1},
       .bandwidth = 0.95,
       .blocks = 65'536},
      {.name = "CB",
       .native_ms = 2.8,
       .worker = 0.94,
       .scaling = {.06, .12, .24, .37, .47, .57, .73, .80, 1},
       .bandwidth = 0.02,
       .blocks = 10'560},
      {.name = "RG",
       .native_ms = 0.128,
       .worker = 0.74,
       .scaling = {.07, .14, .28, .42, .53, .57, .57, .57, 1},
       .bandwidth = 0.1,
       .mix = 0.2,
       .blocks = 128,
       .wave = 2112},
  };
  return all;
}

const ModelKernel& kernel(std::string_view name) {
  const auto at = std::ranges::find(kernels(), name, &ModelKernel::name);
  SLATE_CHECK(at != kernels().end());
  return *at;
}

void rates_of(std::span<const Occupant> occupants, const Machine& machine,
              std::span<double> rates) {
  std::array<std::uint8_t, 512> on_unit{};
  std::array<double, 512> mix_on_unit{};
  if (occupants.size() > 1) {
    for (const Occupant& o : occupants) {
      if (o.kernel->leaves_room) continue;
      for (std::uint32_t u = o.placement.first; u < o.placement.end(); ++u) {
        ++on_unit[u];
        mix_on_unit[u] = std::max(mix_on_unit[u], o.kernel->mix);
      }
    }
  }
  for (std::size_t i = 0; i < occupants.size(); ++i) {
    const Occupant& o = occupants[i];
    const double sms = machine.sms(o.placement);
    double part = 0;  // of its SMs, how much is its own
    for (std::uint32_t u = o.placement.first; u < o.placement.end(); ++u) {
      const double width = machine.sms({.first = u, .count = 1});
      part += on_unit[u] > 1 ? width / on_unit[u] * (1 + mix_on_unit[u]) : width;
    }
    rates[i] = sms > 0 ? o.kernel->scale(sms) * o.kernel->speed(o.form) * part / sms : 0;
  }
  if (occupants.size() > 1) share_bandwidth(occupants, rates);
}

double makespan_of(std::span<const Occupant> occupants, const Machine& machine, double floor) {
  std::vector<double> rates(occupants.size()), weights(occupants.size(), 1.0);
  rates_of(occupants, machine, rates);
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] /= occupants[i].kernel->best_speed();
  return starves(rates, weights, floor) ? 2 : makespan(rates, weights);
}

double best_makespan(std::span<const ModelKernel* const> members, const Machine& machine,
                     double floor) {
  const std::size_t n = members.size();
  SLATE_CHECK(n == 2 || n == 3);
  double best = 1;
  std::vector<Occupant> occupants(n);
  const auto try_forms = [&] {
    for (std::uint32_t mask = 0; mask < (1U << n); ++mask) {
      bool legal = true;
      for (std::size_t i = 0; i < n; ++i) {
        const bool worker = (mask >> i & 1) != 0;
        legal &= !worker || (members[i]->worker_legal && members[i]->blocks > members[i]->wave);
        occupants[i].kernel = members[i];
        occupants[i].form = worker ? Form::kWorker : Form::kNative;
      }
      if (legal) best = std::min(best, makespan_of(occupants, machine, floor));
    }
  };
  for (Occupant& o : occupants) o.placement = machine.whole();
  try_forms();
  for (std::uint32_t a = 1; a + n - 1 <= machine.units; ++a) {
    const std::uint32_t rest = machine.units - a;
    for (std::uint32_t b = n == 2 ? rest : 1; b + n - 2 <= rest; ++b) {
      occupants[0].placement = {.first = 0, .count = a};
      occupants[1].placement = {.first = a, .count = b};
      if (n == 3) occupants[2].placement = {.first = a + b, .count = rest - b};
      try_forms();
    }
  }
  return best;
}

}  // namespace slate::scheduler::test
