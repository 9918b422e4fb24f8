// table: pairs by class, the split by what the memory-bound one needs.
#include "scheduler/table.h"

#include <algorithm>
#include <cmath>

#include "scheduler/forms.h"
#include "scheduler/timeslice.h"

namespace slate::scheduler {
namespace {

constexpr std::uint32_t kRowSamples = 2;  // launches that make a time on a part believable

}  // namespace

std::optional<KernelClass> class_of(const ProfileTable& profiles, KernelId kernel,
                                    const Machine& machine, const Settings& settings) {
  const auto memory = profiles.memory_intensity(kernel, machine);
  if (!memory || !profiles.kernel(kernel).best_alone().known()) return std::nullopt;
  if (*memory >= settings.high_memory) return KernelClass::kHighMemory;
  if (*memory >= settings.medium_memory) return KernelClass::kMediumMemory;
  const auto compute = profiles.compute_intensity(kernel, machine);
  if (!compute) return std::nullopt;
  if (*compute >= settings.high_compute) return KernelClass::kHighCompute;
  if (*compute >= settings.medium_compute) return KernelClass::kMediumCompute;
  return KernelClass::kLowCompute;
}

bool TablePolicy::may_corun(const View& view, std::uint32_t a, std::uint32_t b) const {
  // The session that became active first has the running kernel, the row; the other is the
  // newcomer.
  const Time since_a = roster_[a].active_since, since_b = roster_[b].active_since;
  if (since_b < since_a || (since_b == since_a && b < a)) std::swap(a, b);
  const auto row = class_of(profiles_, roster_[a].launch.kernel, view.machine, settings_);
  const auto column = class_of(profiles_, roster_[b].launch.kernel, view.machine, settings_);
  return row && column &&
         settings_.table[static_cast<std::size_t>(*row)][static_cast<std::size_t>(*column)];
}

bool TablePolicy::still_good(const View& view) {
  if (view.now >= until_) return false;
  if (!paired_) return true;
  for (Half& half : pair_) {
    if (half.index >= roster_.size() || roster_[half.index].id != half.id) {
      const Slot* slot = roster_.find(half.id);
      if (!slot) return false;
      half.index = static_cast<std::uint32_t>(slot - &roster_[0]);
    }
    const Slot& slot = roster_[half.index];
    if (!slot.contends || slot.kernel != half.kernel) return false;
  }
  return true;
}

void TablePolicy::part(const View& view) {
  if (paired_) {
    ++epoch_;
    handover_.begin(view, roster_, profiles_, settings_);
  }
  paired_ = false;
  until_ = {};
}

void TablePolicy::choose(const View& view) {
  const auto contenders = roster_.contenders();
  until_ = view.now + ticks(settings_.quantum);
  const auto poorer = [&](std::uint32_t a, std::uint32_t b) {
    return roster_[a].served < roster_[b].served;
  };
  const std::uint32_t first = *std::ranges::min_element(contenders, poorer);
  std::optional<std::uint32_t> second;
  for (const std::uint32_t i : contenders) {
    if (i == first || (second && !poorer(i, *second))) continue;
    if (view.machine.units > 1 && may_corun(view, first, i)) second = i;
  }
  const std::array<Half, 2> before = pair_;
  const bool was_paired = paired_;
  paired_ = second.has_value();
  if (paired_) {
    const std::uint32_t low = std::min(first, *second), high = std::max(first, *second);
    pair_[0] = {
        .id = roster_[low].id, .kernel = roster_[low].kernel, .index = low, .placement = {}};
    pair_[1] = {
        .id = roster_[high].id, .kernel = roster_[high].kernel, .index = high, .placement = {}};
    split(view);
  }
  const bool same = was_paired && paired_ && before[0].id == pair_[0].id &&
                    before[1].id == pair_[1].id && before[0].placement == pair_[0].placement;
  if (paired_ ? !same : was_paired) {
    ++epoch_;
    handover_.begin(view, roster_, profiles_, settings_);
  }
  if (!paired_ && was_paired) turns_.reset(roster_);
}

std::uint32_t TablePolicy::enough_units(const View& view, const Half& bound) const {
  const KernelProfile& profile = profiles_.kernel(roster_[bound.index].launch.kernel);
  const Form form = choose_form(profile, roster_[bound.index].launch, settings_, false);
  std::uint32_t good = 0, bad = 0;
  for (const auto& [part, time] : profile.placed[static_cast<std::size_t>(form)]) {
    if (part.blocks_per_sm != 0 || time.samples < kRowSamples) continue;
    const bool full = profile.best_alone().ms >= settings_.near_full * time.ms;
    if (full && (good == 0 || part.count < good)) good = part.count;
    if (!full) bad = std::max(bad, part.count);
  }
  // Measured: one fewer than the fewest that do, as long as nothing says that they do not.
  if (good > 0) return good - 1 > bad ? good - 1 : good;
  // Guessed: what saturates the memory, if it is saturated; half the device for medium intensity,
  // as the other's need is as good.
  const double memory = profiles_.memory_intensity(roster_[bound.index].launch.kernel, view.machine)
                            .value_or(settings_.medium_memory);
  const double high = std::max(settings_.high_memory, settings_.medium_memory + 0.01);
  const double how =
      std::clamp((memory - settings_.medium_memory) / (high - settings_.medium_memory), 0.0, 1.0);
  const double part = 0.5 + (settings_.saturation - 0.5) * how;
  const auto guess = static_cast<std::uint32_t>(std::lround(part * view.machine.units));
  return std::max(guess, bad + 1);
}

void TablePolicy::split(const View& view) {
  const auto memory = [&](const Half& half) {
    return profiles_.memory_intensity(roster_[half.index].launch.kernel, view.machine).value_or(0);
  };
  const std::size_t bound = memory(pair_[1]) > memory(pair_[0]) ? 1 : 0;
  const std::uint32_t all = view.machine.units;
  std::array<std::uint32_t, 2> least{};
  for (std::size_t i = 0; i < 2; ++i) {
    least[i] = least_units(roster_[pair_[i].index].launch, view.machine);
  }
  if (least[0] + least[1] > all) least = {1, 1};
  const bool is_bound = memory(pair_[bound]) >= settings_.medium_memory;
  // Never more than half: what scales further than that is no more in need than the other.
  std::uint32_t units = all / 2;
  if (is_bound) units = std::min(units, enough_units(view, pair_[bound]));
  units = std::clamp(units, least[bound], all - least[1 - bound]);
  const std::uint32_t low = bound == 0 ? units : all - units;
  pair_[0].placement = {.first = 0, .count = low};
  pair_[1].placement = {.first = low, .count = all - low};
}

void TablePolicy::decide(const View& view, Decisions& decisions) {
  const bool moved = roster_.update(view);
  decisions.again = roster_.next_change();
  const auto contenders = roster_.contenders();
  if (contenders.empty()) return;
  if (side_by_side_.decide(view, roster_, decisions)) return part(view);
  if (contenders.size() == 1) {
    part(view);
  } else if (moved || !still_good(view)) {
    choose(view);
  }
  handover_.settle(view, roster_);
  roster_.retreat_others(view, decisions);
  if (!paired_) {
    const bool beside = goes_beside(view, roster_, settings_);
    turns_.decide(view, roster_, contenders,
                  {.quantum = settings_.quantum,
                   .long_quantum = settings_.quantum,
                   .tag = beside ? kBesideTag : epoch_,
                   .alone = !beside},
                  decisions);
    decisions.reason = "solo";
    return;
  }
  for (const std::uint32_t i : contenders) {
    if (i == pair_[0].index || i == pair_[1].index) continue;
    if (can_retreat(view.sessions[i])) {
      decisions.resize.push_back({.session = view.sessions[i].id, .placement = {}});
    }
  }
  for (const Half& half : pair_) {
    const SessionView& session = view.sessions[half.index];
    Form form = Form::kNative;
    if (session.waiting) {
      form = choose_form(profiles_.kernel(session.waiting->kernel), *session.waiting, settings_,
                         false);
    }
    const Share share{.form = form,
                      .placement = half.placement,
                      .tag = epoch_,
                      .ahead = settings_.ahead,
                      .has_room = roster_.has_room(session, roster_[half.index]),
                      .settled = true,
                      .sampled = true,
                      .repeats = roster_.may_repeat(session)};
    if (share_device(session, profiles_, settings_, share, decisions))
      roster_.queued(session, roster_[half.index]);
  }
  decisions.again = std::min(decisions.again, until_);
  decisions.reason = "corun";
}

std::string TablePolicy::arrangement_text(const Machine& machine) const {
  if (side_by_side_.active()) return "side by side";
  if (!paired_) return "one at a time";
  std::string text;
  for (const Half& half : pair_) {
    if (!text.empty()) text += ", ";
    text += "session " + std::to_string(half.id) + " on SMs " + sms_text(half.placement, machine);
  }
  return text;
}

void TablePolicy::finished(const Completion& completion) {
  Slot* const slot = roster_.find(completion.session);
  if (slot && completion.tag != epoch_) handover_.ended(*slot, completion);
  if (completion.timed && !paired_) turns_.finished(roster_, completion);
  roster_.finished(completion);
  if (!completion.measured()) return;
  if (completion.tag != epoch_ || completion.tag == kBesideTag) return;
  if (!handover_.clean(completion)) return;
  if (paired_) {
    record_placed(profiles_, completion);
  } else {
    record_alone(profiles_, completion, settings_);
  }
}

void TablePolicy::progressed(const Progress& progress) {
  roster_.progressed(progress);
}

}  // namespace slate::scheduler
