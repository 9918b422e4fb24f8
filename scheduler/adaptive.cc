// adaptive: who is in the group, in which phase it is, and what that means for launches. The search
// itself is search.cc, its measurements measurement.cc, turns turns.cc; groups coming and going are
// adaptive_group.cc.
#include "scheduler/adaptive.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/forms.h"
#include "scheduler/timeslice.h"

namespace slate::scheduler {
namespace {

// Candidates take at most so often the time that all members would need one after the other.
constexpr double kPatience = 4;
constexpr Milliseconds kLeastPatience{20};
// A candidate costs time: the work of the members goes on, but slower than in the best arrangement
// that is known. A tenth is usual, and so much may be spent at once.
constexpr double kUsualLoss = 0.1;
constexpr Milliseconds kFreeLoss{3};
// But a group that gains more than this searches on: what it loses then it has gained before.
constexpr double kGoodEnough = 0.9;
constexpr double kHandoverLaunches = 0.5;  // of the plan before, that a candidate waits for
// Nothing better being known, kernels run together unless that looks so bad when it is watched.
constexpr double kTogether = 1.1;
// The part of its weighted share that everybody gets, where weights were given.
constexpr double kWeightedFloor = 0.93;
// The winner of a search is watched for so long, and so many launches of each, before it is
// believed.
constexpr std::uint32_t kVerifyLaunches = 4;
constexpr Milliseconds kVerify{10};
// Settled: launches of each in a window, and bad windows before searching again.
constexpr std::uint32_t kWindowLaunches = 8;
constexpr Milliseconds kWindow{20};
constexpr std::uint32_t kBadWindows = 2;
// After a time of sharing, turns give those who got less in it this much ahead at most.
constexpr Milliseconds kMostOwed{50};
// A kernel whose time alone has changed so much is another kernel.
constexpr double kAloneDrift = 0.25;
// Launches that started beside work which nobody can stop: they say nothing.
constexpr std::uint64_t kBesideTag = 0;

}  // namespace

AdaptivePolicy::AdaptivePolicy(const Settings& settings, ProfileTable& profiles)
    : settings_(settings),
      profiles_(profiles),
      roster_(settings_, profiles_),
      turns_(settings_, profiles_) {
  for (auto* each : {&wanted_kernels_, &kernels_}) each->reserve(kMostMembers);
  wanted_.reserve(kMostMembers);
  wanted_ids_.reserve(kMostMembers);
  wanted_weights_.reserve(kMostMembers);
  members_.reserve(kMostMembers);
}

void AdaptivePolicy::decide(const View& view, Decisions& decisions) {
  roster_.update(view);
  decisions.again = roster_.next_change();
  choose_members(view);
  if (!same_group(view) || profiles_.edits() != edits_) regroup(view);
  if (members_.empty()) return;
  step(view, decisions);
  roster_.retreat_others(view, decisions);
  act(view, decisions);
  if (roster_.contenders().size() > members_.size()) {
    decisions.again = std::min(decisions.again, rotate_at_);
  }
}

void AdaptivePolicy::step(const View& view, Decisions& decisions) {
  handover_.settle(view, roster_);
  if (phase_ == Phase::kMeasure && all_measured()) enter_group(view);
  if (phase_ == Phase::kSearch) step_search(view, decisions);
  if (phase_ == Phase::kSettled) step_settled(view, decisions);
}

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
  return std::max(settings_.measure, Milliseconds(longest * static_cast<double>(members_.size())));
}

/// When the next candidate may be tried: what all of them cost stays a small part of the time.
Time AdaptivePolicy::affordable_at() const {
  const double cost = loss_ + kUsualLoss * candidate_time().count() - kFreeLoss.count();
  return search_since_ + ticks(Milliseconds(std::max(0.0, cost) / settings_.search_loss));
}

/// How the group shares where nothing better is known. Together is what the hardware does by
/// itself: no worse than turns but for kernels that spoil each other's caches, which the few
/// launches of a candidate cannot tell: a short kernel of a program may have met a long one. Where
/// a program pauses, turns would leave its gaps empty, and a launch of its own that lasts long for
/// want of room is still over sooner than in its turn.
Arrangement AdaptivePolicy::fallback() const {
  if (phase_ < Phase::kSearch || !equal_weights()) return {};
  const bool gaps = std::ranges::any_of(
      members_, [&](const Member& member) { return roster_[member.index].pauses(); });
  const bool bad = together_verified_ && !gaps && search_.together_score() > kTogether;
  const bool good = search_.may_together() && !bad;
  return good ? search_.together() : Arrangement{};
}

/// The best arrangement that was found is worth it.
bool AdaptivePolicy::gains() const {
  const double best = search_.best_score() / (1 - settings_.least_gain);
  const bool beside =
      fallback().sharing == Sharing::kTogether && search_.best() != search_.together();
  return best < 1 && (!beside || best < search_.together_score());
}

/// Of its fair share, what everybody has to get. Weights that were given are to be kept.
double AdaptivePolicy::floor() const {
  return equal_weights() ? settings_.floor : kWeightedFloor;
}

Time AdaptivePolicy::give_up_at() const {
  double all = 0;
  for (const Member& member : members_) {
    const double ms = expected_time(profiles_, row(member), settings_).count();
    // Of longer ones the progress is followed; nobody waits for their end.
    all += ms > settings_.native_try.count() ? settings_.measure.count() : ms;
  }
  return plan_since_ + ticks(Milliseconds(all * kPatience) + kLeastPatience);
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

/// Believes what is seen of it once it has been watched for long enough.
void AdaptivePolicy::watch_together(const View& view, Decisions& decisions) {
  if (together_verified_ || !watched(view)) return;
  search_.together_seen(measurement_.rates_with_gaps());
  together_verified_ = true;
  decisions.reason = "watched";
  decisions.score = search_.together_score();
}

/// The present plan, long enough for the launches of all members.
bool AdaptivePolicy::watched(const View& view) const {
  return view.now - plan_since_ >= ticks(kVerify) && handover_.over() &&
         measurement_.seen(kVerifyLaunches, kVerify);
}

void AdaptivePolicy::try_next(const View& view, Decisions& decisions) {
  if (!resting_ || view.now >= rest_until_) rest_until_ = affordable_at();
  resting_ = view.now < rest_until_;
  if (resting_) {
    if (plan_ == search_.together()) watch_together(view, decisions);
    const Arrangement best = gains() ? search_.best() : fallback();
    if (plan_ != best) adopt(view, best);
    decisions.again = std::min(decisions.again, rest_until_);
  } else {
    adopt(view, search_.candidate());
    decisions.again = std::min(decisions.again, give_up_at());
  }
}

void AdaptivePolicy::step_search(const View& view, Decisions& decisions) {
  if (resting_) return try_next(view, decisions);
  const bool seen = measurement_.seen(1, settings_.measure);
  const auto rates = measurement_.rates();
  const bool over =
      seen && makespan_of(rates) > settings_.cut * std::min(1.0, search_.best_score());
  const Time start = std::max(plan_since_, handover_.since());
  const bool enough = seen && handover_.over() &&
                      measurement_.seen(settings_.form_tries, settings_.measure) &&
                      view.now - start >= ticks(settings_.measure);
  const Time give_up = give_up_at();
  const double best = std::clamp(search_.best_score(), kGoodEnough, 1.0);
  double score = settings_.cut;
  if (over || enough || (seen && view.now >= give_up)) {
    score = std::max(best, makespan_of(rates));
    search_.measured(rates);
  } else if (view.now >= give_up) {
    search_.rejected();
  } else {
    const Time due = start + ticks(settings_.measure);
    decisions.again = std::min(decisions.again, due > view.now ? std::min(due, give_up) : give_up);
    return;
  }
  loss_ += Milliseconds(view.now - plan_since_).count() * (1 - best / score);
  if (search_.done()) {
    conclude(view);
  } else {
    try_next(view, decisions);
  }
  decisions.reason = "search";
  decisions.score = score;
}

bool AdaptivePolicy::gone_off(const View& view) {
  if (pinned_) return false;
  if (plan_.sharing == Sharing::kAlone) {
    return std::ranges::any_of(members_, [&](const Member& member) {
      const double ms = profiles_.kernel(member.settled_kernel).best_alone().ms;
      return member.alone_ms > 0 && std::abs(ms / member.alone_ms - 1) > kAloneDrift;
    });
  }
  // The first windows are short: they verify what was remembered.
  const bool first = windows_ < kBadWindows;
  const Milliseconds window = first ? settings_.measure : kWindow;
  if (view.now - plan_since_ < ticks(window) || !handover_.over()) return false;
  if (!measurement_.seen(first ? settings_.form_tries : kWindowLaunches, window)) return false;
  const bool as_it_comes =
      plan_.sharing == Sharing::kTogether && plan_.quotas == decltype(plan_.quotas){};
  const double least = floor() * (as_it_comes ? kTogetherFloor : 1);
  const auto rates = measurement_.rates();
  const bool bad = makespan_of(rates) > reference_ * (1 + settings_.drift) ||
                   starving(rates, least * (1 - settings_.drift));
  bad_windows_ = bad ? bad_windows_ + 1 : 0;
  ++windows_;
  measurement_.begin(members_.size(), view.now);
  plan_since_ = view.now;
  return bad_windows_ >= kBadWindows;
}

/// A candidate may look good for the few launches that it is measured by: those that meet the end
/// of the one before it, or the other's pause.
void AdaptivePolicy::verify(const View& view, Decisions& decisions) {
  if (!watched(view)) return;
  decisions.reason = "watched";
  // Short launches, each of them timed, leave gaps: then the time that went by tells whether
  // anything is gained at all.
  decisions.score = makespan_of(measurement_.rates_with_gaps());
  const bool slower = decisions.score >= 1;
  const auto rates = measurement_.rates();
  const auto theirs = weights();
  const bool no_good =
      slower || starving(rates, floor()) ||
      (!equal_weights() && is_uneven(rates, std::span(theirs).first(members_.size())));
  reference_ = makespan_of(rates);
  const double score = no_good ? std::numeric_limits<double>::infinity() : reference_;
  verifying_ = false;
  const bool gained = plan_ == search_.best() && gains();
  if (plan_ == search_.together()) watch_together(view, decisions);
  measurement_.begin(members_.size(), view.now);
  plan_since_ = view.now;
  if (!gained && gains()) return conclude(view);  // all together was less good than it looked
  if (!gained) {
    const Arrangement now_best = fallback();
    if (plan_ != now_best) {
      reference_ = 1;
      verifying_ = now_best.sharing != Sharing::kAlone && !together_verified_;
      adopt(view, now_best);
    }
    if (equal_weights()) remember();
    return;
  }
  if (search_.verified(score) || !gains()) {
    conclude(view);
  } else if (equal_weights()) {
    remember();
  }
}

void AdaptivePolicy::step_settled(const View& view, Decisions& decisions) {
  if (verifying_) return verify(view, decisions);
  const bool off = gone_off(view);
  if (off && (searched_at_ == Time{} || view.now - searched_at_ >= ticks(wait_again_))) {
    search_again(view);
  } else if (plan_.sharing == Sharing::kPlaced && !pinned_) {
    rotate_equals(view, decisions);
  }
}

void AdaptivePolicy::rotate_equals(const View& view, Decisions& decisions) {
  // Units do not divide evenly: of members alike, whoever has got least has the best place.
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
    if (plan != plan_) adopt(view, plan);
  }
  decisions.again = std::min(decisions.again, equals_at_);
}

void AdaptivePolicy::act(const View& view, Decisions& decisions) {
  // Members of former groups that still contend wait for their turn off the device.
  for (const std::uint32_t i : roster_.contenders()) {
    const SessionView& session = view.sessions[i];
    if (!roster_[i].member && can_retreat(session)) {
      decisions.resize.push_back({.session = session.id, .placement = {}});
    }
  }
  if (!exclusive()) return share(view, decisions);
  if (!was_exclusive_) {
    was_exclusive_ = true;
    exclusive_since_ = epoch_;
    turns_.reset(roster_, kMostOwed);
  }
  const bool beside = long_outsider(view, roster_, settings_);
  if (beside) {
    exclusive_since_ = epoch_ + 1;
  } else if (exclusive_since_ > epoch_) {
    epoch_ = exclusive_since_;
  }
  turns_.decide(view, roster_, wanted_,
                {.quantum = settings_.adaptive_quantum,
                 .long_quantum = settings_.long_quantum,
                 .tag = beside ? kBesideTag : epoch_,
                 .alone = !beside,
                 .sampled = phase_ == Phase::kSettled || resting_},
                decisions);
  if (!decisions.start.empty() && decisions.reason.empty()) {
    decisions.reason = phase_ == Phase::kSingle ? "alone" : "turn";
  }
}

Form AdaptivePolicy::form_of(std::size_t member, const WaitingLaunch& launch) const {
  const KernelProfile& profile = profiles_.kernel(launch.kernel);
  if (profiles_.family(launch.kernel) != members_[member].kernel) {
    return choose_form(profile, launch, settings_, false);
  }
  const Form form = profile.form_override.value_or(plan_.forms[member]);
  if (form == Form::kWorker && !may_work(launch)) return Form::kNative;
  return form == Form::kSlice ? choose_form(profile, launch, settings_, false) : form;
}

void AdaptivePolicy::share(const View& view, Decisions& decisions) {
  // Turns that are queued are let run out before the first candidate: beside it, whoever came first
  // would get ahead of all others.
  if (was_exclusive_ && phase_ == Phase::kSearch && !handover_.over()) return;
  was_exclusive_ = false;
  const bool tries = phase_ == Phase::kSearch && !resting_;
  const Milliseconds ahead = tries ? settings_.search_ahead : settings_.ahead;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const SessionView& session = view.sessions[member.index];
    const Share share{.form = session.waiting ? form_of(i, *session.waiting) : Form::kNative,
                      .placement = member.target,
                      .tag = epoch_,
                      .ahead = ahead,
                      .settled = !tries,
                      .sampled = !tries};
    if (share_device(session, profiles_, settings_, share, decisions)) {
      roster_[member.index].last_start = view.now;
    }
  }
  if (!decisions.start.empty() && decisions.reason.empty()) {
    decisions.reason = plan_.sharing == Sharing::kPlaced ? "placed" : "together";
  }
}

std::string AdaptivePolicy::arrangement_text(const Machine& machine) const {
  switch (phase_) {
    case Phase::kIdle:
      return "idle";
    case Phase::kSingle:
      return "session " + std::to_string(members_.front().id) + " alone";
    case Phase::kMeasure:
      return "taking turns, to measure each alone";
    case Phase::kSearch:
    case Phase::kSettled:
      break;
  }
  if (plan_.sharing == Sharing::kAlone) return "taking turns";
  std::string text = phase_ == Phase::kSearch && !resting_ ? "trying " : "";
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i > 0) text += ", ";
    text += "session " + std::to_string(members_[i].id) + " on SMs " +
            sms_text(members_[i].target, machine) + " (" + std::string(form_name(plan_.forms[i])) +
            ")";
  }
  return text;
}

AdaptivePolicy::Member* AdaptivePolicy::find(SessionId id) {
  const auto at = std::ranges::find(members_, id, &Member::id);
  return at == members_.end() ? nullptr : &*at;
}

void AdaptivePolicy::learn_alone(const Completion& completion, Member* member) {
  if (completion.tag < exclusive_since_ || completion.tag == kBesideTag || completion.resized) {
    return;
  }
  record_alone(profiles_, completion, settings_);
  if (member && profiles_.family(completion.kernel) == member->kernel)
    member->fresh += completion.launches;
}

void AdaptivePolicy::finished(const Completion& completion) {
  const auto alone = profiles_.alone(completion.kernel);
  Member* member = find(completion.session);
  if (Slot* slot = roster_.find(completion.session)) {
    const bool known = alone && completion.timed;
    const double ms = known ? alone->count() * completion.part : completion.device_time.count();
    slot->served += ms * completion.launches / slot->weight;
    if (completion.tag != epoch_) handover_.ended(*slot, completion);
  }
  if (completion.timed) {
    if (exclusive()) turns_.finished(roster_, completion);
    roster_.account(completion);
  }
  if (exclusive()) return completion.timed ? learn_alone(completion, member) : void();
  if (!member || completion.tag != epoch_ || !handover_.clean(completion)) return;
  if (plan_.sharing == Sharing::kPlaced && completion.timed) record_placed(profiles_, completion);
  if (alone) {
    measurement_.add(static_cast<std::size_t>(member - members_.data()), *alone * completion.part,
                     completion);
  }
}

void AdaptivePolicy::follow_alone(const Progress& progress, Member& member) {
  KernelProfile& profile = profiles_.kernel(progress.kernel);
  if (turns_.holder() != progress.session || exclusive_since_ > epoch_) {
    member.span.restart();
    return;
  }
  // Between two of its turns it made no progress.
  if (member.turn != turns_.turn()) member.span.restart();
  member.turn = turns_.turn();
  const ProgressSpan::Step step = member.span.next(progress);
  member.followed += step.ms;
  member.grids += step.grids;
  if (member.followed < settings_.measure_alone.count() || member.grids <= 0) return;
  const double ms = member.followed / member.grids;
  TimeEstimate& time = profile.alone[static_cast<std::size_t>(Form::kWorker)];
  // Launches that end speak for themselves.
  if (ms > settings_.long_kernel.count() &&
      (time.samples < settings_.form_tries || member.fresh < fresh_needed_)) {
    time.add(ms);
    ++member.fresh;
  }
  member.followed = member.grids = 0;
}

void AdaptivePolicy::progressed(const Progress& progress) {
  Member* member = find(progress.session);
  if (!member || profiles_.family(progress.kernel) != member->kernel || progress.placement.empty())
    return;
  if (exclusive()) return follow_alone(progress, *member);
  const TimeEstimate& alone = profiles_.kernel(progress.kernel).best_alone();
  if (progress.placement != member->target || !handover_.over() || !alone.known()) return;
  // Short launches are measured by their ends.
  if (!is_long(profiles_.kernel(progress.kernel), settings_)) return;
  measurement_.add_progress(static_cast<std::size_t>(member - members_.data()), progress,
                            Milliseconds(alone.ms));
}

}  // namespace slate::scheduler
