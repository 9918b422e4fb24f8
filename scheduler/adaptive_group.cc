// adaptive: groups of sessions coming and going, what is remembered of them, and searches
// beginning, pausing and ending.
#include <algorithm>
#include <cmath>

#include "scheduler/adaptive.h"
#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {
constexpr std::size_t kMostPaused = 32;
constexpr std::uint32_t kMostInterrupted = 3;  // times for one candidate
// A memory-bound kernel starts with half of what another gets: a third of the device beside one.
constexpr double kMemoryShare = 0.5;
constexpr double kSearchStay = 10;  // times Settings::rotation
constexpr double kMostWait = 64;    // times Settings::search_again
constexpr double kMostNative = 2;   // times Settings::long_kernel: longer ones stay workers
}  // namespace

void AdaptivePolicy::choose_members(const View& view) {
  const auto contenders = roster_.contenders();
  const std::size_t most = std::clamp<std::size_t>(settings_.group, 1, kMostMembers);
  if (contenders.size() <= most) {
    wanted_.assign(contenders.begin(), contenders.end());
    return;
  }
  bool rotate = view.now >= rotate_at_;
  // A group that is being searched for stays a while longer.
  const Time patience = group_since_ + ticks(settings_.rotation * kSearchStay);
  if (rotate && phase_ >= Phase::kMeasure && phase_ <= Phase::kSearch && view.now < patience) {
    rotate = false;
    rotate_at_ = std::min(patience, view.now + ticks(settings_.rotation));
  }
  if (rotate) rotate_at_ = view.now + ticks(settings_.rotation);
  wanted_.clear();
  for (const std::uint32_t i : contenders) {
    if (!rotate && roster_[i].member && wanted_.size() < most) wanted_.push_back(i);
  }
  if (wanted_.size() == most) return;
  while (wanted_.size() < most) {
    std::uint32_t best = contenders[0];
    bool any = false;
    for (const std::uint32_t i : contenders) {
      if (std::ranges::find(wanted_, i) != wanted_.end()) continue;
      if (!any || roster_[i].served < roster_[best].served) best = i;
      any = true;
    }
    wanted_.push_back(best);
  }
  std::ranges::sort(wanted_);
}

bool AdaptivePolicy::same_group(const View&) {
  bool same = wanted_.size() == wanted_ids_.size() && preemptible_ == roster_.may_be_preempted();
  for (std::size_t i = 0; same && i < wanted_.size(); ++i) {
    const Slot& slot = roster_[wanted_[i]];
    same = slot.id == wanted_ids_[i] && slot.kernel == wanted_kernels_[i] &&
           slot.weight == wanted_weights_[i];
  }
  if (!same) return false;
  for (Member& member : members_) {
    if (member.index >= roster_.size() || roster_[member.index].id != member.id) {
      const auto at = std::ranges::find(wanted_ids_, member.id);
      member.index = wanted_[static_cast<std::size_t>(at - wanted_ids_.begin())];
    }
  }
  return true;
}

void AdaptivePolicy::regroup(const View& view) {
  if (profiles_.edits() == edits_) {
    pause_search(view.now);
  } else {
    paused_.clear();  // they know what may just have been forgotten
    edits_ = profiles_.edits();
  }
  group_since_ = view.now;
  loss_ = 0;
  searched_ = false;
  preemptible_ = roster_.may_be_preempted();
  pinned_ = false;
  phases_ = 0;
  best_phase_ = kNoGood;
  out_of_step_ = 0;
  keep_step_ = kKeepStep;
  for (std::size_t i = 0; i < roster_.size(); ++i) roster_[i].member = false;
  members_.clear();
  wanted_ids_.clear();
  wanted_kernels_.clear();
  wanted_weights_.clear();
  double weights = 0;
  for (const std::uint32_t i : wanted_) {
    Slot& slot = roster_[i];
    slot.member = true;
    wanted_ids_.push_back(slot.id);
    wanted_kernels_.push_back(slot.kernel);
    wanted_weights_.push_back(slot.weight);
    weights += slot.weight;
    Member& member = members_.emplace_back();
    member.id = slot.id;
    member.index = i;
    member.kernel = slot.kernel;
    member.weight = slot.weight;
  }
  for (Member& member : members_) {
    member.weight *= static_cast<double>(members_.size()) / weights;
  }
  std::ranges::stable_sort(members_, {}, &Member::kernel);
  kernels_.clear();
  for (const Member& member : members_) kernels_.push_back(member.kernel);
  searched_at_ = {};
  wait_again_ = settings_.search_again;
  fresh_needed_ = 0;
  phase_ = members_.empty() ? Phase::kIdle : Phase::kMeasure;
  adopt(view, {});
  if (members_.size() == 1) {
    phase_ = Phase::kSingle;
  } else if (members_.size() > 1 && (is_pinned() || all_measured())) {
    enter_group(view);
  }
}

bool AdaptivePolicy::equal_weights() const {
  return std::ranges::all_of(members_, [&](const Member& m) {
    return std::abs(m.weight - members_.front().weight) < 1e-9;
  });
}

bool AdaptivePolicy::is_pinned() const {
  const GroupProfile* known = profiles_.group(kernels_);
  return known != nullptr && known->pinned;
}

bool AdaptivePolicy::all_measured() const {
  return std::ranges::all_of(members_, [&](const Member& member) {
    const WaitingLaunch& launch = roster_[member.index].launch;
    return member.fresh >= fresh_needed_ &&
           std::ranges::any_of(profiles_.rows_of_family(member.kernel), [&](KernelId id) {
             return alone_measured(profiles_.kernel(id), launch, settings_);
           });
  });
}

void AdaptivePolicy::enter_group(const View& view) {
  if (fresh_needed_ == 0 && recall(view)) return;
  begin_search(view);
}

void AdaptivePolicy::note_settled() {
  for (Member& member : members_) {
    member.settled_kernel = row(member);
    member.alone_ms = profiles_.kernel(member.settled_kernel).best_alone().ms;
  }
}

/// What is known of the group. For a group of equal kernels, what is known of another group of that
/// kernel counts too, as far as it does not depend on the number of members.
const GroupProfile* AdaptivePolicy::known_group() const {
  if (const GroupProfile* known = profiles_.group(kernels_)) return known;
  if (kernels_.front() != kernels_.back()) return nullptr;
  for (std::size_t n = 2; n <= kMostMembers; ++n) {
    const GroupProfile* const known = profiles_.group(std::vector(n, kernels_.front()));
    if (known == nullptr || known->pinned || known->sharing == Sharing::kPlaced) continue;
    const auto limited = [](const Placement& placement) {
      return placement.blocks_per_sm != 0 || placement.ahead;
    };
    if (std::ranges::none_of(known->placements, limited)) return known;
  }
  return nullptr;
}

/// Whether a session of higher priority would have to wait for no long native launch that could be
/// workers.
bool AdaptivePolicy::can_make_room(const Arrangement& plan) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const bool stays = plan.sharing != Sharing::kAlone && plan.forms[i] == Form::kNative;
    const bool could_be_worker = may_work(roster_[members_[i].index].launch);
    if (stays && could_be_worker && is_long(profiles_.kernel(row(members_[i])), settings_))
      return false;
  }
  return true;
}

bool AdaptivePolicy::recall(const View& view) {
  if (!equal_weights() && !is_pinned()) return false;
  // A search that was interrupted goes on: if something was known, it has turned out to be wrong.
  if (!is_pinned() && resume_search(view)) return true;
  if (const GroupProfile* known = known_group()) {
    const std::size_t n = members_.size();
    Arrangement plan{.sharing = known->sharing};
    std::uint32_t units = 0;
    if (plan.sharing != Sharing::kAlone) {
      if (known->forms.empty()) return false;
      std::fill_n(plan.forms.begin(), n, known->forms.front());
      if (known->forms.size() == n) std::ranges::copy(known->forms, plan.forms.begin());
    }
    if (plan.sharing == Sharing::kTogether && known->placements.size() == n) {
      for (std::size_t i = 0; i < n; ++i) {
        plan.quotas[i] = known->placements[i].blocks_per_sm;
        plan.ahead[i] = known->placements[i].ahead;
      }
    }
    if (plan.sharing == Sharing::kPlaced) {
      if (known->placements.size() != n) return false;
      for (std::size_t i = 0; i < n; ++i) {
        plan.units[i] = known->placements[i].count;
        if (plan.units[i] == 0 || plan.units[i] > view.machine.units) return false;
        units += plan.units[i];
      }
      // Learnt on another device, or on another partition of this one.
      if (units > view.machine.units) return false;
    }
    if (!known->pinned && preemptible_ && !can_make_room(plan)) return false;
    reference_ = known->makespan;
    if (plan.sharing == Sharing::kTogether && known->makespan > 0) {
      best_phase_ = known->makespan;
      phases_ = kLeastPhases;
    }
    pinned_ = known->pinned;
    phase_ = Phase::kSettled;
    windows_ = bad_windows_ = 0;
    equals_at_ = {};
    note_settled();
    adopt(view, plan);
    return true;
  }
  return false;
}

bool AdaptivePolicy::resume_search(const View& view) {
  const auto paused = paused_.find(kernels_);
  if (paused == paused_.end() || paused->second.preemptible != preemptible_) return false;
  search_ = std::move(paused->second.search);
  loss_ = paused->second.loss;
  interrupted_ = paused->second.interrupted;
  together_watched_ = paused->second.together_watched;
  paused_.erase(paused);
  start_search(view);
  return true;
}

void AdaptivePolicy::pause_search(Time now) {
  if (phase_ != Phase::kSearch || !equal_weights()) return;
  if (!resting_ && !search_.done()) {
    if (plan_ != search_.together()) loss_ += kUsualLoss * Milliseconds(now - adopted_).count();
    // Meetings that are too short for it must not be spent on it for ever.
    if (++interrupted_ == kMostInterrupted) {
      interrupted_ = 0;
      search_.passed();
    }
  }
  if (paused_.size() >= kMostPaused) {
    paused_.erase(
        std::ranges::min_element(paused_, {}, [](const auto& entry) { return entry.second.at; }));
  }
  const Milliseconds spent = now - group_since_;
  paused_.insert_or_assign(kernels_, Paused{.search = search_,
                                            .at = epoch_,
                                            .preemptible = preemptible_,
                                            .together_watched = together_watched_,
                                            .loss = loss_ - settings_.search_loss * spent.count(),
                                            .interrupted = interrupted_});
}

Search::Member AdaptivePolicy::describe(const View& view, const Member& member) const {
  const KernelProfile& profile = profiles_.kernel(row(member));
  const WaitingLaunch& launch = roster_[member.index].launch;
  Search::Member out;
  out.weight = member.weight;
  out.form = choose_form(profile, launch, settings_, false);
  out.form_together = out.form;
  out.lasts = is_long(profile, settings_);
  const bool fills = out.form == Form::kWorker && out.lasts;
  // A long native launch cannot be taken off the device.
  const bool has_to_move =
      fills &&
      (preemptible_ || profile.best_alone().ms > kMostNative * settings_.long_kernel.count());
  if (out.form == Form::kWorker && !has_to_move && !is_much_quicker(profile)) {
    out.form_together = Form::kNative;
  }
  out.least_units = least_units(launch, view.machine);
  const Form other = out.form == Form::kWorker ? Form::kNative : Form::kWorker;
  out.flips = may_work(launch) && (!out.lasts || out.form == Form::kSlice) &&
              !is_clearly_slower(profile, other);
  out.fills = fills;
  if (may_work(launch)) {
    out.room = static_cast<std::uint32_t>(launch.wave / std::max(1U, view.machine.sm_count));
  }
  const auto memory = profiles_.memory_intensity(row(member), view.machine);
  const auto compute = profiles_.compute_intensity(row(member), view.machine);
  const bool bound = memory && *memory >= settings_.medium_memory && compute.value_or(0) < *memory;
  out.share = member.weight * (bound ? kMemoryShare : 1);
  const double alone = profile.best_alone().ms;
  for (const auto& [placement, time] : profile.placed[static_cast<std::size_t>(out.form)]) {
    if (placement.blocks_per_sm == 0 && placement.count < view.machine.units && time.ms > 0) {
      out.points.push_back({.units = placement.count, .rate = alone / time.ms});
    }
  }
  return out;
}

void AdaptivePolicy::begin_search(const View& view) {
  std::vector<Search::Member> members;
  for (const Member& member : members_) members.push_back(describe(view, member));
  ++searches_;
  interrupted_ = 0;
  searched_at_ = view.now;
  together_watched_ = {};
  search_.begin(std::move(members),
                {.units = view.machine.units,
                 .together = equal_weights(),
                 .floor = floor(),
                 .even = !equal_weights(),
                 .in_parts = members_.size() == 2 || kernels_.front() != kernels_.back(),
                 .alike = kernels_.front() == kernels_.back()});
  start_search(view);
}

void AdaptivePolicy::start_search(const View& view) {
  phase_ = Phase::kSearch;
  searched_ = true;
  disappointments_ = 0;
  resting_ = false;
  if (search_.done()) return conclude(view);
  rest_until_ = affordable_at();
  resting_ = search_.candidate() != search_.together() && view.now < rest_until_;
  adopt(view, resting_ ? best_plan(view.now) : search_.candidate());
}

void AdaptivePolicy::conclude(const View& view) {
  const Arrangement plan = best_plan(view.now);
  const bool wins = plan == search_.best() && gains();
  resting_ = gains() && !wins;  // until what looks best can be afforded
  phase_ = resting_ ? Phase::kSearch : Phase::kSettled;
  if (resting_) rest_until_ = affordable_at();
  const double score = wins ? search_.best_score() : search_.together_score();
  reference_ = std::isfinite(score) ? score : 1;
  windows_ = bad_windows_ = 0;
  equals_at_ = {};
  note_settled();
  if (plan != plan_) adopt(view, plan);
  if (equal_weights()) remember();
}

void AdaptivePolicy::remember() const {
  GroupProfile group;
  group.kernels = kernels_;
  group.sharing = plan_.sharing;
  group.makespan = reference_;
  group.samples = search_.tried();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    group.forms.push_back(plan_.forms[i]);
    group.placements.push_back(members_[i].target);
  }
  profiles_.set_group(std::move(group));
}

void AdaptivePolicy::search_again(const View& view) {
  // Times alone may be what has changed, so they come first.
  fresh_needed_ = settings_.form_tries;
  for (Member& member : members_) member.fresh = 0;
  if (searched_at_ != Time{})
    wait_again_ = std::min(wait_again_ * 2, settings_.search_again * kMostWait);
  searched_at_ = view.now;
  phase_ = Phase::kMeasure;
  adopt(view, {});
}

/// A part of one launch of the first member; 0 if some member's launches are too long to stagger.
Milliseconds AdaptivePolicy::part_of_a_launch() const {
  for (const Member& member : members_) {
    if (expected_time(profiles_, row(member), settings_) > settings_.measure) return {};
  }
  return expected_time(profiles_, row(members_.front()), settings_) /
         static_cast<double>(members_.size());
}

void AdaptivePolicy::adopt(const View& view, const Arrangement& plan) {
  plan_ = plan;
  ++epoch_;
  adopted_ = view.now;
  judged_ = false;
  look_after_ = kWatch;
  for (const Member& member : members_) {
    look_after_ = std::max(look_after_,
                           std::min(kLongWatch, expected_time(profiles_, row(member), settings_)));
  }
  measurement_.begin(members_.size());
  whole_.begin(members_.size());
  rough_.begin(members_.size());
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].target = view.machine.whole();
    members_[i].target.blocks_per_sm = plan.quotas[i];
    members_[i].target.ahead = plan.ahead[i];
    if (plan.sharing != Sharing::kPlaced) continue;
    members_[i].target = {.first = first, .count = plan.units[i]};
    first += plan.units[i];
  }
  handover_.begin(view, roster_, profiles_, settings_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    // No block gets ahead of workers that hold all SMs.
    const SessionView& session = view.sessions[members_[i].index];
    if (plan.lets_ahead() && plan.forms[i] == Form::kNative && on_device(session) &&
        worth_resizing(session, profiles_, settings_)) {
      handover_.wait_for(roster_[members_[i].index], session.running.launches);
    }
  }
  stagger_ = plan.sharing == Sharing::kTogether ? part_of_a_launch() : Milliseconds(0);
  staggered_from_ = kNever;
}

}  // namespace slate::scheduler
