// The profile table: rows by key, estimates of times. Pure values; the engine's scheduler thread.
#include "scheduler/profile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace slate::scheduler {
namespace {

// Two forms that differ by less than this are equally quick: native then, which needs no control
// block.
constexpr double kWorkerGain = 0.01;
// Measurements further apart than this are an outlier or a change.
constexpr double kUsualSpread = 0.25;
// How far one sample moves the estimate, towards a usual one and at most towards an unusual one:
// one outlier costs an eighth, a lasting change is followed within a few launches.
constexpr double kFollow = 0.2;
constexpr double kMostStep = 0.125;
constexpr std::uint32_t kEarly = 8;       // samples
constexpr std::uint32_t kMostRounds = 8;  // so many launches of one measurement count
// About so many of the last samples make up an estimate.
constexpr std::uint32_t kMemory = 8;

// Keeps what was not measured. The row stays, too: ids are held elsewhere.
void wipe(KernelProfile& kernel) {
  KernelProfile fresh;
  fresh.key = std::move(kernel.key);
  fresh.blocks = kernel.blocks;
  fresh.owner = kernel.owner;
  fresh.compute_override = kernel.compute_override;
  fresh.memory_override = kernel.memory_override;
  fresh.form_override = kernel.form_override;
  kernel = std::move(fresh);
}

}  // namespace

std::uint32_t grid_bucket(std::uint64_t blocks) {
  if (blocks <= 1) return 0;
  const auto power = static_cast<std::uint32_t>(std::bit_width(blocks)) - 1;
  const double within = static_cast<double>(blocks) / std::ldexp(1.0, static_cast<int>(power));
  return power * 4 + static_cast<std::uint32_t>(std::min(3.0, std::floor(std::log2(within) * 4)));
}

void TimeEstimate::add(double measured_ms, std::uint32_t count) {
  if (!(measured_ms > 0) || count == 0) return;
  if (samples == 0) {
    ms = measured_ms;
    samples = count;
    return;
  }
  // Warming up, and whatever else a launch meets, only ever makes it slower, and all that were
  // measured at once met the same. So the first ones that are quicker are believed at once, later
  // ones one by one, and slower ones are one outlier, however many they are.
  const std::uint32_t rounds = std::min(count, kMostRounds);
  const double apart = std::abs(measured_ms / ms - 1);
  const bool unusual = apart > kUsualSpread, quicker = measured_ms < ms;
  if (unusual && quicker && samples < kEarly) {
    ms = measured_ms;
    samples += count;
    return;
  }
  spread += (std::min(apart, 1.0) - spread) * std::max(kFollow, 1.0 / samples);
  if (unusual) {
    if (quicker) {
      ms = std::max(measured_ms, ms * std::pow(1 - kMostStep, rounds));
    } else if (samples > 1) {
      ms *= 1 + kMostStep;
    }
    samples += count;
    return;
  }
  for (std::uint32_t i = 0; i < rounds; ++i) {
    if (samples < kEarly && measured_ms < ms) {
      ms = measured_ms;
    } else {
      ms += (measured_ms - ms) * std::max(kFollow, 1.0 / (samples + 1));
    }
    ++samples;
  }
  samples += count - rounds;
}

double TimeEstimate::doubt() const {
  return samples == 0 ? 0 : spread / std::sqrt(std::min(samples, kMemory));
}

Form KernelProfile::best_form() const {
  if (form_override && alone[static_cast<std::size_t>(*form_override)].known()) {
    return *form_override;
  }
  const TimeEstimate& native = alone[static_cast<std::size_t>(Form::kNative)];
  const TimeEstimate& worker = alone[static_cast<std::size_t>(Form::kWorker)];
  const TimeEstimate& slice = alone[static_cast<std::size_t>(Form::kSlice)];
  // Slices stand in for the native form of kernels too long to be run natively.
  if (!native.known() && slice.known()) {
    return worker.known() && worker.ms < slice.ms ? Form::kWorker : Form::kSlice;
  }
  if (!worker.known()) return Form::kNative;
  if (!native.known()) return Form::kWorker;
  // Of a kernel whose launches differ, a few may have been the small ones.
  const double gain = std::max(kWorkerGain, native.doubt() + worker.doubt());
  return worker.ms < native.ms * (1 - gain) ? Form::kWorker : Form::kNative;
}

KernelId ProfileTable::find_or_add(const KernelKey& key) {
  const auto [at, added] = by_key_.try_emplace(key, static_cast<KernelId>(kernels_.size()));
  if (added) {
    KernelKey any_grid = key;
    any_grid.grid_bucket = 0;
    std::vector<KernelId>& family = families_[std::move(any_grid)];
    family.push_back(at->second);
    kernels_.emplace_back().key = key;
    families_of_.push_back(family.front());
  }
  return at->second;
}

std::span<const KernelId> ProfileTable::rows_of_family(KernelId id) const {
  KernelKey any_grid = kernels_[id].key;
  any_grid.grid_bucket = 0;
  return families_.at(any_grid);
}

/// The row of the family that `holds` something and whose grid is most like that of `id`; null if
/// there is none. Such rows know their grid's size, and so must `id`.
template <typename Holds>
const KernelProfile* ProfileTable::nearest(KernelId id, Holds holds) const {
  const KernelProfile& profile = kernels_[id];
  if (profile.blocks == 0) return nullptr;
  const KernelProfile* found = nullptr;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (const KernelId sibling : rows_of_family(id)) {
    const KernelProfile& other = kernels_[sibling];
    if (other.blocks == 0 || !holds(other)) continue;
    const std::uint32_t away = other.key.grid_bucket > profile.key.grid_bucket
                                   ? other.key.grid_bucket - profile.key.grid_bucket
                                   : profile.key.grid_bucket - other.key.grid_bucket;
    if (away >= least) continue;
    least = away;
    found = &other;
  }
  return found;
}

std::optional<Milliseconds> ProfileTable::alone(KernelId id) const {
  const KernelProfile& profile = kernels_[id];
  if (const TimeEstimate& own = profile.best_alone(); own.known()) return Milliseconds(own.ms);
  const KernelProfile* const other =
      nearest(id, [](const KernelProfile& row) { return row.best_alone().known(); });
  if (other == nullptr) return std::nullopt;
  return Milliseconds(other->best_alone().ms * static_cast<double>(profile.blocks) /
                      static_cast<double>(other->blocks));
}

std::optional<double> ProfileTable::intensity(KernelId id, double KernelProfile::*amount,
                                              const std::optional<double>& set, double peak) const {
  if (set) return set;
  const KernelProfile& profile = kernels_[id];
  const auto time = alone(id);
  if (!time || time->count() <= 0 || peak <= 0) return std::nullopt;
  double work = profile.*amount;
  if (work < 0) {
    const KernelProfile* const other =
        nearest(id, [amount](const KernelProfile& row) { return row.*amount >= 0; });
    if (other == nullptr) return std::nullopt;
    work =
        other->*amount * static_cast<double>(profile.blocks) / static_cast<double>(other->blocks);
  }
  return work / (time->count() * 1e-3) / (peak * 1e9);
}

std::optional<double> ProfileTable::compute_intensity(KernelId id, const Machine& machine) const {
  return intensity(id, &KernelProfile::flops, kernels_[id].compute_override, machine.peak_gflops);
}

std::optional<double> ProfileTable::memory_intensity(KernelId id, const Machine& machine) const {
  return intensity(id, &KernelProfile::bytes, kernels_[id].memory_override, machine.peak_gbytes);
}

std::optional<KernelId> ProfileTable::find(const KernelKey& key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? std::nullopt : std::optional(at->second);
}

const GroupProfile* ProfileTable::group(const std::vector<KernelId>& kernels) const {
  const auto at = groups_.find(kernels);
  return at == groups_.end() ? nullptr : &at->second;
}

void ProfileTable::set_group(GroupProfile group) {
  group = ordered(group);
  std::vector<KernelId> kernels = group.kernels;
  groups_.insert_or_assign(std::move(kernels), std::move(group));
}

GroupProfile ProfileTable::ordered(const GroupProfile& group) const {
  const std::size_t n = group.kernels.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return family(group.kernels[i]); });
  GroupProfile result = group;
  for (std::size_t i = 0; i < n; ++i) {
    result.kernels[i] = family(group.kernels[order[i]]);
    if (group.forms.size() == n) result.forms[i] = group.forms[order[i]];
    if (group.placements.size() == n) result.placements[i] = group.placements[order[i]];
  }
  return result;
}

void ProfileTable::clear() {
  for (KernelProfile& kernel : kernels_) wipe(kernel);
  groups_.clear();
  ++edits_;
}

void ProfileTable::forget(KernelId id) {
  if (id >= kernels_.size()) return;
  wipe(kernels_[id]);
  std::erase_if(groups_, [family = family(id)](const auto& entry) {
    return std::ranges::count(entry.first, family) > 0;
  });
  ++edits_;
}

void ProfileTable::forget_group(const std::vector<KernelId>& kernels) {
  groups_.erase(kernels);
  ++edits_;
}

}  // namespace slate::scheduler
