// adaptive: trying what the search proposes, at a price that can be afforded, and judging what
// runs. The search itself is search.cc, its measurements measurement.cc.
#include <algorithm>
#include <cmath>
#include <vector>

#include "scheduler/adaptive.h"
#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {

// Candidates take at most so often the time that all members would need one after the other.
constexpr double kPatience = 2.5;
constexpr Milliseconds kLeastPatience{20};
// So much of what candidates cost may be spent at once.
constexpr Milliseconds kFreeLoss{2};
// But a group that gains more than this searches on: what it loses then it has gained before.
constexpr double kGoodEnough = 0.9;
constexpr double kHandoverLaunches = 0.5;  // of the plan before, that a candidate waits for
// Members that share with a higher score gain next to nothing, even if all that is on the device
// were done.
constexpr double kHardlyGains = 0.95;
// Nothing better being known, kernels run together unless that looks so bad when it is watched.
constexpr double kTogether = 1.1;
// The part of its weighted share that each member gets, where weights were given.
constexpr double kWeightedFloor = 0.93;
// So often what looked best may be worse than it looked before its successor must be affordable.
constexpr std::uint32_t kDisappointments = 3;
constexpr double kBlocks = 2;  // of a long kernel, one after the other, that a candidate takes
// What runs is judged as a whole after kWatch, after twice that, and so on until this.
constexpr Milliseconds kLastLook{320};
// Settled: bad windows before searching again.
constexpr Milliseconds kWindow{20};
constexpr std::uint32_t kBadWindows = 2;
// Of what was as good as it was remembered at first, bad for so long: a device that draws too much
// power slows down for a fifth of a second (H200), and what is found then is good for nothing else.
constexpr Milliseconds kLasting{300};
// Rhythms of members alike: each is tried for so long. By so little is one not worse than the best,
// and by half as much again for each that was tried.
constexpr Milliseconds kPhaseWatch{16};
constexpr double kSamePhase = 0.006;
// By so much worse than the best, and the rhythm has been lost.
constexpr double kLostPhase = 0.03;
// Two members alike, all together, are left as they are up to this score over the best possible
// one.
constexpr double kAsIfAlone = 1.08;
// And by so little there is nothing that parts of the device could bring, only the rhythm.
constexpr double kNearlyAlone = 1.2;
// A kernel whose time alone has changed so much is another kernel.
constexpr double kAloneDrift = 0.25;

}  // namespace

/// About how long a candidate takes: the launches that it is measured by, several at once, and what
/// ran before them.
Milliseconds AdaptivePolicy::candidate_time() const {
  double longest = 0;
  for (const Member& member : members_) {
    const KernelProfile& profile = profiles_.kernel(row(member));
    const double ms = expected_time(profiles_, row(member), settings_).count();
    // Of workers that can be moved the progress is followed.
    const bool moves = is_long(profile, settings_) && may_work(roster_[member.index].launch);
    const double launches = ms > settings_.measure.count() ? 1 : settings_.form_tries;
    longest = std::max(longest, moves ? 0 : ms * (launches + kHandoverLaunches));
  }
  return std::max(candidate_measure(),
                  Milliseconds(longest * static_cast<double>(members_.size())));
}

/// For how long a candidate is measured at least. The progress of a kernel is counted in blocks:
/// over less than some of them it says nothing.
Milliseconds AdaptivePolicy::candidate_measure() const {
  Milliseconds longest = settings_.measure;
  for (const Member& member : members_) {
    if (!is_long(profiles_.kernel(row(member)), settings_)) continue;
    const Milliseconds block =
        block_time(expected_time(profiles_, row(member), settings_), roster_[member.index].launch);
    longest = std::max(longest, std::min(block * kBlocks, kLongWatch));
  }
  return longest;
}

/// What the group could have while a candidate is tried. All together is what it would have without
/// slate; of what it has gained beyond that, not all counts.
double AdaptivePolicy::reference_score() const {
  const double together = search_.may_together() ? search_.together_score() : 1;
  return std::clamp(search_.best_score(), std::min(kGoodEnough, together), 1.0);
}

/// When the next candidate may be tried: what all of them cost stays a small part of the time.
Time AdaptivePolicy::affordable_at() const {
  const double cost = loss_ + kUsualLoss * candidate_time().count() - kFreeLoss.count();
  return group_since_ + ticks(Milliseconds(std::max(0.0, cost) / settings_.search_loss));
}

/// How the group shares where nothing better is known. Together is what the hardware does by
/// itself: no worse than turns but for kernels that spoil each other's caches, which the few
/// launches of a candidate cannot tell: a short kernel of a program may have met a long one. Where
/// a program pauses, turns would leave its gaps empty, and a launch of its own that lasts long for
/// want of room is still over sooner than in its turn.
Arrangement AdaptivePolicy::fallback() const {
  if (phase_ < Phase::kSearch || !equal_weights()) return {};
  const bool gaps = std::ranges::any_of(
      members_, [&](const Member& member) { return roster_[member.index].pauses; });
  const bool bad = together_watched_ >= kWindow && !gaps && search_.together_score() > kTogether;
  const bool good = search_.may_together() && !bad;
  return good ? search_.together() : Arrangement{};
}

/// Whether the best arrangement found is worth it. Where the other choice is turns that take long
/// work off the device, any gain is enough.
bool AdaptivePolicy::gains() const {
  const bool turns = fallback().sharing == Sharing::kAlone;
  const bool has_price = turns && std::ranges::any_of(members_, [&](const Member& member) {
                           return is_long(profiles_.kernel(row(member)), settings_) &&
                                  may_work(roster_[member.index].launch);
                         });
  const double least = has_price ? 0 : settings_.least_gain;
  const double best = search_.best_score() / (1 - least);
  const bool beside = !turns && search_.best() != search_.together();
  return best < 1 && (!beside || best < search_.together_score());
}

/// The part of its fair share that each member has to get. Weights that were given are kept.
double AdaptivePolicy::floor() const {
  return equal_weights() ? settings_.floor : kWeightedFloor;
}

Time AdaptivePolicy::give_up_at() const {
  double all = 0;
  for (const Member& member : members_) {
    const double ms = expected_time(profiles_, row(member), settings_).count();
    // The progress of longer launches is followed; their ends are not waited for.
    all += ms > settings_.native_try.count() ? settings_.measure.count() : ms;
  }
  const Milliseconds patience = Milliseconds(all * kPatience) + kLeastPatience;
  // How long the work of the plan before takes says nothing of this one.
  return handover_.over() ? ran_since() + ticks(patience) : adopted_ + ticks(2 * patience);
}

std::array<double, kMostMembers> AdaptivePolicy::weights() const {
  std::array<double, kMostMembers> weights{};
  std::ranges::transform(members_, weights.begin(), [](const Member& m) { return m.weight; });
  return weights;
}

double AdaptivePolicy::makespan_of(std::span<const double> rates) const {
  const auto theirs = weights();
  return makespan(rates, std::span(theirs).first(members_.size()));
}

bool AdaptivePolicy::starving(std::span<const double> rates, double floor) const {
  const auto theirs = weights();
  return starves(rates, std::span(theirs).first(members_.size()), floor);
}

/// Since when nothing of the plan before runs any more, if the handover is over.
Time AdaptivePolicy::ran_since() const {
  return std::max(adopted_, handover_.since());
}

bool AdaptivePolicy::uneven(std::span<const double> rates) const {
  const auto theirs = weights();
  return is_uneven(rates, std::span(theirs).first(members_.size()));
}

/// A candidate may look good for the few launches that it is measured by: those that meet the end
/// of the one before it, or the other's pause, or that happen to be short ones. So whatever runs is
/// looked at again after ever longer times, as a whole.
bool AdaptivePolicy::look(const View& view, Decisions& decisions) {
  if (!searched_ || plan_.sharing == Sharing::kAlone || look_after_ == kNoLook) return false;
  const bool covered = handover_.over() && whole_.covers(look_after_);
  if (!covered) {
    // A member that shows nothing for so long gets too little.
    const bool new_plan = !judged_ && plan_ != search_.together();
    const Time give_up = new_plan ? give_up_at() : kNever;
    decisions.again = std::min(decisions.again, give_up);
    if (view.now < give_up) return false;
  }
  const auto rates = whole_.throughputs();
  const double score = covered ? std::min(makespan_of(rates), kNoGood) : kNoGood;
  decisions.reason = "watched";
  decisions.score = reference_ = score;
  if (plan_ == search_.together()) {
    search_.together_seen(rates);
    together_watched_ = look_after_;
    best_phase_ = std::min(best_phase_, score);
  }
  const bool no_good = starving(rates, floor()) || (!equal_weights() && uneven(rates));
  search_.verified(plan_, no_good ? kNoGood : score, look_after_);
  if (plan_ != fallback()) {
    disappointments_ += plan_ == search_.best() ? 0 : 1;
    const double best = reference_score();
    const Time before = std::max(adopted_, looked_at_);
    const double as = std::min(score, settings_.cut);
    loss_ += Milliseconds(view.now - before).count() * std::max(0.0, 1 - best / as);
  }
  judged_ = true;
  looked_at_ = view.now;
  look_after_ = look_after_ < kLastLook ? look_after_ * 2 : kNoLook;
  return true;
}

/// What the search has found, or how to do without. What only looks best has to show it, which can
/// cost something: after some disappointments that must be affordable.
Arrangement AdaptivePolicy::best_plan(Time now) const {
  const bool may_be_tried = search_.best_watched().count() > 0 ||
                            disappointments_ < kDisappointments || now >= affordable_at();
  return gains() && may_be_tried ? search_.best() : fallback();
}

void AdaptivePolicy::try_next(const View& view, Decisions& decisions) {
  if (resting_ && view.now < rest_until_) {
    (void)look(view, decisions);
    const Arrangement best = best_plan(view.now);
    if (plan_ != best) adopt(view, best);
  } else if (search_.done()) {
    return conclude(view);
  } else {
    rest_until_ = affordable_at();
    resting_ = view.now < rest_until_;
    adopt(view, resting_ ? best_plan(view.now) : search_.candidate());
  }
  decisions.again = std::min(decisions.again, resting_ ? rest_until_ : give_up_at());
}

/// All together is what all candidates are compared with, and costs nothing that the programs would
/// not lose without slate. So it is watched for longer than other candidates, as it will run. An
/// arrangement with a member ahead is too: its launches of a few ms say little.
bool AdaptivePolicy::watches_together() const {
  return phase_ == Phase::kSearch && !resting_ &&
         (plan_ == search_.together() || plan_.lets_ahead());
}

void AdaptivePolicy::step_together(const View& view, Decisions& decisions) {
  const Time start = ran_since();
  const Time soon = handover_.over() ? start + ticks(kWatch) : kNever;
  const Time enough = handover_.over() ? start + ticks(kLongWatch) : kNever;
  const Time give_up = std::min(give_up_at(), enough);
  const bool watched = handover_.over() && whole_.covers(kWatch);
  auto rates = whole_.throughputs();
  // A member that has ended too little for a rate has done at most what it has on the device.
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const RunningWork& running = view.sessions[members_[i].index].running;
    if (rates[i] == 0 && view.now > start)
      rates[i] = std::min(1.0, running.expected / (view.now - start));
  }
  const double score = std::min(makespan_of(rates), kNoGood);
  // A member gets hardly any launch through; that launch need not be waited for.
  const bool gains_nothing = view.now >= soon && score > kHardlyGains;
  if (!watched && !gains_nothing && view.now < give_up) {
    decisions.again = std::min(decisions.again, view.now < soon ? soon : give_up);
    return;
  }
  const bool as_it_comes = plan_ == search_.together();
  if (watched && as_it_comes) together_watched_ = kWatch;
  decisions.score = score;
  if (!as_it_comes) {
    const double best = reference_score();
    loss_ +=
        Milliseconds(view.now - adopted_).count() * (1 - best / std::max(best, decisions.score));
  }
  search_.measured(rates);
  if (watched && alike() && as_if_alone(decisions.score, kNearlyAlone)) search_.end();
  next_candidate(view, decisions);
}

/// Two programs with the same kernel, which have nothing to complement one another with.
bool AdaptivePolicy::alike() const {
  return kernels_.size() == 2 && kernels_.front() == kernels_.back();
}

/// Whether no member's work takes longer than `longer` times its time alone.
bool AdaptivePolicy::as_if_alone(double score, double longer) const {
  const std::vector<double> alone(members_.size(), 1);
  return score <= longer * makespan_of(alone);
}

void AdaptivePolicy::next_candidate(const View& view, Decisions& decisions) {
  resting_ = false;
  interrupted_ = 0;
  try_next(view, decisions);
  decisions.reason = "search";
}

/// By launches that were timed, one by one. Nothing is queued behind workers with a quota, so the
/// gaps between them are a part of what they cost, and of what the others gain.
std::vector<double> AdaptivePolicy::rates_of(const Measurement& candidate) const {
  auto rates = candidate.rates();
  const auto whole = candidate.throughputs();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (plan_.quotas[i] != 0) rates[i] = std::min(rates[i], whole[i]);
  }
  return rates;
}

void AdaptivePolicy::step_search(const View& view, Decisions& decisions) {
  if (resting_) return try_next(view, decisions);
  if (watches_together()) return step_together(view, decisions);
  const Milliseconds measure = candidate_measure();
  const Time give_up = give_up_at();
  const bool late = view.now >= give_up;
  // In the end, what overlapped with the plan before says more than nothing.
  const Measurement& shown = late && !measurement_.seen(1, measure) ? rough_ : measurement_;
  const bool seen = shown.seen(1, measure);
  const auto rates = seen ? rates_of(shown) : std::vector<double>();
  const bool over =
      seen && makespan_of(rates) > settings_.cut * std::min(1.0, search_.best_score());
  const Time start = ran_since();
  const bool enough = seen && handover_.over() &&
                      measurement_.seen(settings_.form_tries, measure) &&
                      view.now - start >= ticks(measure);
  const double best = reference_score();
  double score = settings_.cut;
  if (over || enough || (seen && late)) {
    decisions.score = makespan_of(rates);
    score = std::max(best, decisions.score);
    search_.measured(rates);
  } else if (late) {
    search_.rejected();
  } else {
    const Time due = start + ticks(measure);
    decisions.again = std::min(decisions.again, due > view.now ? std::min(due, give_up) : give_up);
    return;
  }
  loss_ += Milliseconds(view.now - adopted_).count() * (1 - best / score);
  next_candidate(view, decisions);
}

bool AdaptivePolicy::gone_off(Time now) {
  if (pinned_) return false;
  if (plan_.sharing == Sharing::kAlone) {
    return std::ranges::any_of(members_, [&](const Member& member) {
      const double ms = profiles_.kernel(member.settled_kernel).best_alone().ms;
      return member.alone_ms > 0 && std::abs(ms / member.alone_ms - 1) > kAloneDrift;
    });
  }
  // The first windows are short: they verify what was remembered.
  const bool first = windows_ < kBadWindows;
  const Milliseconds window = first ? kWatch : kWindow;
  if (!handover_.over() || !measurement_.covers(window)) return false;
  const double least = floor() * (plan_.as_it_comes() ? kTogetherFloor : 1);
  const auto rates = measurement_.throughputs();
  const double score = makespan_of(rates);
  out_of_step_ = score > best_phase_ * (1 + kLostPhase) ? out_of_step_ + 1 : 0;
  const bool starved = starving(rates, least * (1 - settings_.drift));
  const bool bad = starved || score > reference_ * (1 + settings_.drift);
  if (bad_windows_ == 0) bad_since_ = now;
  bad_windows_ = bad ? bad_windows_ + 1 : 0;
  ++windows_;
  measurement_.begin(members_.size());
  const bool lasts = windows_ == bad_windows_ || now - bad_since_ >= ticks(kLasting);
  return bad_windows_ >= kBadWindows && (starved || lasts);
}

void AdaptivePolicy::step_settled(const View& view, Decisions& decisions) {
  if (look(view, decisions)) {
    if (plan_ != best_plan(view.now)) return conclude(view);
    if (equal_weights()) remember();
  }
  const bool off = gone_off(view.now);
  if (off && (searched_at_ == Time{} || view.now - searched_at_ >= ticks(wait_again_))) {
    search_again(view);
  } else if (plan_.sharing == Sharing::kPlaced && !pinned_ && (judged_ || !searched_)) {
    rotate_equals(view, decisions);
  } else if (out_of_step_ >= kBadWindows) {
    find_step_again(view);
  } else {
    try_phases(view);
  }
}

/// Of two programs that are alike, with kernels that fill the device and others that do not, it
/// depends on chance whether the gaps of one are filled by the other, and they keep the rhythm in
/// which they began. So they begin anew, one later behind the other each time, until it is none of
/// the worse. Among more of them there is always one that fills a gap.
void AdaptivePolicy::try_phases(const View& view) {
  if (!alike() || plan_.sharing != Sharing::kTogether || phases_ >= kMostPhases) return;
  const Milliseconds usual = part_of_a_launch();
  if (usual.count() == 0 || !handover_.over() || !whole_.covers(kPhaseWatch)) return;
  const double score = makespan_of(whole_.throughputs());
  const bool good = score <= best_phase_ * (1 + kSamePhase * (1 + 0.5 * phases_));
  best_phase_ = std::min(best_phase_, score);
  if (as_if_alone(score, kAsIfAlone) || (phases_ >= kLeastPhases && good)) {
    phases_ = kMostPhases;  // it stays
    return;
  }
  ++phases_;
  adopt(view, plan_);
  stagger_ = usual * (1 + 0.5 * phases_);
}

/// A hiccup of one of them, and the rhythm that was good is lost: they begin anew, with longer and
/// longer in between should that not help.
void AdaptivePolicy::find_step_again(const View& view) {
  out_of_step_ = 0;
  if (!alike() || plan_.sharing != Sharing::kTogether || phases_ < kMostPhases) return;
  if (view.now - adopted_ < ticks(keep_step_)) return;
  keep_step_ *= 2;
  adopt(view, plan_);
}

void AdaptivePolicy::rotate_equals(const View& view, Decisions& decisions) {
  // Units do not divide evenly: of members alike, the one served least gets the largest part.
  if (view.now >= equals_at_) {
    double all = 0;
    for (const Member& m : members_) {
      all += expected_time(profiles_, row(m), settings_).count();
    }
    equals_at_ = view.now + ticks(std::max(settings_.rotation, Milliseconds(all)));
    Arrangement plan = plan_;
    const auto poorer = [&](std::size_t a, std::size_t b) {
      return roster_[members_[a].index].served < roster_[members_[b].index].served;
    };
    for (std::size_t i = 0; i < members_.size(); ++i) {
      for (std::size_t k = i + 1; k < members_.size(); ++k) {
        const bool alike =
            members_[k].kernel == members_[i].kernel && members_[k].weight == members_[i].weight;
        if (!alike || plan.units[i] == plan.units[k]) continue;
        if (poorer(i, k) == (plan.units[i] > plan.units[k])) continue;
        std::swap(plan.units[i], plan.units[k]);
        std::swap(plan.forms[i], plan.forms[k]);
      }
    }
    if (plan != plan_) {
      adopt(view, plan);
      look_after_ = kNoLook;  // it is as good as the one before
      judged_ = true;
    }
  }
  decisions.again = std::min(decisions.again, equals_at_);
}

}  // namespace slate::scheduler
