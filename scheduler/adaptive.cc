// adaptive: in which phase the group is, what that means for launches, and what their ends teach.
// Groups coming and going are adaptive_group.cc; trying and judging arrangements
// adaptive_search.cc.
#include "scheduler/adaptive.h"

#include <algorithm>

#include "scheduler/forms.h"
#include "scheduler/timeslice.h"

namespace slate::scheduler {
namespace {

// Most ms that turns give a session in advance because it was served less during a time of sharing.
constexpr Milliseconds kMostOwed{50};
// Longest time that all members wait for work of the plan before, so that they begin together. That
// work may belong to a session outside the group.
constexpr Milliseconds kMostHeld{4};

}  // namespace

AdaptivePolicy::AdaptivePolicy(const Settings& settings, ProfileTable& profiles)
    : settings_(settings),
      profiles_(profiles),
      roster_(settings_, profiles_),
      turns_(settings_, profiles_),
      side_by_side_(settings_, profiles_) {
  for (auto* each : {&wanted_kernels_, &kernels_}) each->reserve(kMostMembers);
  wanted_.reserve(kMostMembers);
  wanted_ids_.reserve(kMostMembers);
  wanted_weights_.reserve(kMostMembers);
  members_.reserve(kMostMembers);
}

void AdaptivePolicy::decide(const View& view, Decisions& decisions) {
  roster_.update(view);
  decisions.again = roster_.next_change();
  if (side_by_side_.decide(view, roster_, decisions)) {
    wanted_.clear();
  } else {
    choose_members(view);
  }
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
  const bool beside = goes_beside(view, roster_, settings_);
  if (beside) {
    exclusive_since_ = epoch_ + 1;
  } else if (exclusive_since_ > epoch_) {
    epoch_ = exclusive_since_;
  }
  const bool measures = phase_ == Phase::kMeasure;
  turns_.decide(view, roster_, wanted_,
                {.quantum = settings_.adaptive_quantum,
                 .long_quantum = settings_.long_quantum,
                 .unknown_turn = measures ? settings_.measure_alone + kChange : Milliseconds(0),
                 .tag = beside ? kBesideTag : epoch_,
                 .alone = !beside,
                 .sampled = !measures,
                 .repeats = phase_ == Phase::kSingle && !beside},
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

/// Launches of a member that goes ahead, queued before the plan, still wait behind the others'
/// blocks. They end soon if the other members begin nothing until then.
bool AdaptivePolicy::lets_pass(const View& view, std::size_t member, Decisions& decisions) {
  const auto comes_ahead = [&](const Member& each) {
    return each.target.ahead && roster_[each.index].old_work > 0;
  };
  const Time latest = adopted_ + ticks(kMostHeld + look_after_);
  if (members_[member].target.ahead || view.now >= latest) return false;
  if (std::ranges::none_of(members_, comes_ahead)) return false;
  decisions.again = std::min(decisions.again, latest);
  return true;
}

/// Whether the plan before still has work on the device and may still be waited for.
bool AdaptivePolicy::waits_for_old_work(const View& view, Decisions& decisions) const {
  const Time latest = adopted_ + ticks(kMostHeld);
  if (handover_.over() || view.now >= latest) return false;
  decisions.again = std::min(decisions.again, latest);
  return true;
}

/// Programs that start together stay in step: each falls into the others' rhythm. That is the worst
/// rhythm for kernels that saturate the same resource, or leave the same gaps at their ends. So
/// under all together, the members begin one after the other.
bool AdaptivePolicy::holds_back(const View& view, std::size_t member, Decisions& decisions) {
  if (lets_pass(view, member, decisions)) return true;
  if (stagger_.count() == 0 || member == 0) return false;
  if (waits_for_old_work(view, decisions)) return true;
  if (staggered_from_ == kNever) staggered_from_ = view.now;
  const Time due = staggered_from_ + ticks(stagger_ * static_cast<double>(member));
  if (view.now < due) decisions.again = std::min(decisions.again, due);
  return view.now < due;
}

void AdaptivePolicy::share(const View& view, Decisions& decisions) {
  // Turns that are queued run out before the first candidate: beside it, the session that came
  // first would get ahead of all others.
  if (was_exclusive_ && phase_ == Phase::kSearch && waits_for_old_work(view, decisions)) return;
  was_exclusive_ = false;
  const bool tries = phase_ == Phase::kSearch && !resting_;
  const bool watches = watches_together();
  const bool one_by_one = tries && !watches;
  // What is queued is in the way of the next candidate. Programs alike keep the rhythm in which
  // they are watched.
  const bool shallow = tries && !(watches && alike());
  const Milliseconds ahead = shallow ? settings_.search_ahead : settings_.ahead;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const SessionView& session = view.sessions[member.index];
    if (holds_back(view, i, decisions)) continue;
    // Launches of one session run one behind the other: beside them nobody waits for all.
    Slot& slot = roster_[member.index];
    const bool has_room =
        !session.waiting || roster_.is_only_session(session) || roster_.has_room(session, slot);
    const Share share{.form = session.waiting ? form_of(i, *session.waiting) : Form::kNative,
                      .placement = member.target,
                      .tag = epoch_,
                      .ahead = ahead,
                      .has_room = has_room,
                      .settled = !one_by_one,
                      .sampled = !one_by_one,
                      .repeats = !one_by_one && roster_.may_repeat(session)};
    if (share_device(session, profiles_, settings_, share, decisions)) {
      slot.last_start = view.now;
      roster_.queued(session, slot);
    }
  }
  if (!decisions.start.empty() && decisions.reason.empty()) {
    decisions.reason = plan_.sharing == Sharing::kPlaced ? "placed" : "together";
  }
}

std::string AdaptivePolicy::arrangement_text(const Machine& machine) const {
  switch (phase_) {
    case Phase::kIdle:
      return side_by_side_.active() ? "side by side" : "idle";
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
  const Milliseconds work = completion.work(alone);
  Member* member = find(completion.session);
  Slot* const slot = roster_.find(completion.session);
  if (slot && completion.tag != epoch_) handover_.ended(*slot, completion);
  if (completion.timed && exclusive()) turns_.finished(roster_, completion);
  roster_.finished(completion);
  if (exclusive()) return completion.measured() ? learn_alone(completion, member) : void();
  if (!member || completion.tag != epoch_) return;
  const auto index = static_cast<std::size_t>(member - members_.data());
  if (alone && !completion.resized) rough_.add(index, work, completion);
  if (!handover_.clean(completion)) return;
  if (plan_.sharing == Sharing::kPlaced && completion.measured())
    record_placed(profiles_, completion);
  if (!alone) return;
  for (Measurement* each : {&measurement_, &whole_}) each->add(index, work, completion);
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
  // Launches that end are measured by their ends. A launch of unknown time may be taken off the
  // device before its end, so its progress counts, too.
  if ((ms > settings_.long_kernel.count() || !time.known()) &&
      (time.samples < settings_.form_tries || member.fresh < fresh_needed_)) {
    time.add(ms);
    ++member.fresh;
  }
  member.followed = member.grids = 0;
}

void AdaptivePolicy::progressed(const Progress& progress) {
  roster_.progressed(progress);
  Member* member = find(progress.session);
  if (!member || profiles_.family(progress.kernel) != member->kernel || progress.placement.empty())
    return;
  if (exclusive()) return follow_alone(progress, *member);
  const TimeEstimate& alone = profiles_.kernel(progress.kernel).best_alone();
  if (progress.placement != member->target || !alone.known()) return;
  // Short launches are measured by their ends.
  if (!is_long(profiles_.kernel(progress.kernel), settings_)) return;
  const auto index = static_cast<std::size_t>(member - members_.data());
  rough_.add_progress(index, progress, Milliseconds(alone.ms));
  if (!handover_.over()) return;
  for (Measurement* each : {&measurement_, &whole_})
    each->add_progress(index, progress, Milliseconds(alone.ms));
}

}  // namespace slate::scheduler
