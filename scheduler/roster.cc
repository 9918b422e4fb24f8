// Sessions between decisions: activity, priority, ageing, and each one's main kernel.
#include "scheduler/roster.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {

// Recent device time of a session that decides on its main kernel; older time is halved away.
constexpr double kMixMs = 50;
// Another kernel becomes the main one when it takes so much more time: no flapping between two.
constexpr double kMainMargin = 1.5;
// A session that comes back with a kernel that had less than this share starts afresh. Of a kernel
// that is launched among longer ones little is seen.
constexpr double kMinorShare = 0.02;
// A gap of less than this part of a launch is none: behind a long one the next is not queued.
constexpr double kGap = 0.05;
// Launches by which a session counts as one that pauses; older ones are halved away.
constexpr double kRecentLaunches = 64;
constexpr double kMostLead = 100;  // ms of work over weight, before the contender served least
// So many, and so many of them after pauses. At its start every program pauses two or three times.
constexpr double kEnoughToTell = 16, kPausing = 0.2;
// Part of the launches that came after the ends of all others, from which a program counts as one
// that waits for each. A newcomer counts so until its second launch tells more.
constexpr double kEach = 0.8;
constexpr double kGapSamples = 16;      // launches over which gaps and overheads are averaged
constexpr double kMostOverhead = 0.05;  // ms; more is the host's other work

/// Device time of the session's, of kernels of that family.
void credit(Slot& slot, KernelId family, double ms) {
  Slot::KernelTime* mine = &slot.mix[0];
  for (Slot::KernelTime& entry : slot.mix) {
    const bool match = entry.ms > 0 && entry.kernel == family;
    const bool mine_matches = mine->ms > 0 && mine->kernel == family;
    if (match || (!mine_matches && entry.ms < mine->ms)) mine = &entry;
  }
  if (mine->kernel != family) *mine = {.kernel = family};
  mine->ms += std::min(ms, 2 * kMixMs);
}

}  // namespace

bool Roster::align(const View& view) {
  const std::size_t n = view.sessions.size();
  bool same = slots_.size() == n;
  for (std::size_t i = 0; same && i < n; ++i) same = slots_[i].id == view.sessions[i].id;
  if (same) return false;
  spare_.clear();
  for (const SessionView& session : view.sessions) {
    const Slot* old = find(session.id);
    spare_.push_back(old ? *old : Slot{.id = session.id, .last_start = view.now});
  }
  slots_.swap(spare_);
  contenders_.reserve(n);
  return true;
}

Slot* Roster::find(SessionId id) {
  const auto at = std::ranges::find(slots_, id, &Slot::id);
  return at == slots_.end() ? nullptr : &*at;
}

void Roster::note_arrival(Slot& slot, const SessionView& session) const {
  // Slices of one launch come one after the other.
  if (session.waiting->since == slot.last_came || session.waiting->blocks_started > 0) return;
  slot.last_came = session.waiting->since;
  ++slot.came;
  const Milliseconds gap = session.waiting->since - session.idle_since;
  const Milliseconds usual = expected_time(profiles_, session.waiting->kernel, settings_);
  if (session.running.launches == 0 && gap.count() > 0) {
    ++slot.came_behind;
    const Milliseconds counted = std::min(gap, settings_.linger);
    slot.gap_ms += (counted.count() - slot.gap_ms) / std::min(slot.came_behind, kGapSamples);
    if (gap > usual * kGap) ++slot.came_to_nothing;
  }
  // Once it does, half as many are enough: plans must not go to and fro.
  const double enough = slot.pauses ? kPausing / 2 : kPausing;
  slot.pauses = slot.came >= kEnoughToTell && slot.came_to_nothing > enough * slot.came;
  slot.waits_each = slot.came_behind > kEach * slot.came;
  if (slot.came < kRecentLaunches) return;
  slot.came /= 2;
  slot.came_behind /= 2;
  slot.came_to_nothing /= 2;
}

void Roster::choose_kernel(Slot& slot, const SessionView& session, Time now) {
  const RunningWork& running = session.running;
  if (!session.waiting && !slot.has_kernel && running.launches > 0) {
    slot.launch.kernel = running.kernel;
    slot.kernel = profiles_.family(running.kernel);
    slot.has_kernel = true;
  }
  if (session.waiting && (!slot.has_kernel || !slot.active)) {
    const KernelId family = profiles_.family(session.waiting->kernel);
    double all = 0, mine = 0;
    for (const Slot::KernelTime& entry : slot.mix) {
      all += entry.ms;
      if (entry.kernel == family) mine += entry.ms;
    }
    if (!slot.has_kernel || mine < all * kMinorShare) {
      slot.mix = {};
      slot.kernel = family;
      slot.launch = *session.waiting;
      slot.has_kernel = true;
    }
  }
  // A launch that goes on and on is the main kernel before it has ended.
  if (running.launches > 0 && running.resizable &&
      profiles_.family(running.kernel) != slot.kernel &&
      now - running.started > settings_.long_kernel) {
    slot.mix = {};
    slot.kernel = profiles_.family(running.kernel);
    slot.launch = {.kernel = running.kernel,
                   .blocks = running.blocks,
                   .worker_legal = running.form == Form::kWorker};
    slot.has_kernel = true;
  }
  if (session.waiting && profiles_.family(session.waiting->kernel) == slot.kernel)
    slot.launch = *session.waiting;
}

bool Roster::aged(Slot& slot, const SessionView& session, Time now) {
  if (!retreated(session)) {
    slot.emptied = kNever;
  } else if (slot.emptied == kNever) {
    slot.emptied = now;
  }
  if (settings_.ageing.count() <= 0) return false;
  Time since = kNever;
  if (session.waiting) since = std::max(session.waiting->since, slot.last_start);
  since = std::min(since, slot.emptied);
  if (since == kNever) return now < slot.grace_until;
  const Time due = since + ticks(settings_.ageing);
  if (due <= now && slot.grace_until <= now) slot.grace_until = now + ticks(settings_.quantum);
  later(due > now ? due : slot.grace_until);
  return now < slot.grace_until;
}

void Roster::share_by_user(const View& view) {
  users_.begin(view.now);
  for_several_users_ = false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    for_several_users_ |= view.sessions[i].user != view.sessions[0].user;
    if (slots_[i].active) users_.add(view.sessions[i], slots_[i].weight);
  }
  if (!users_.several()) return;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].active) slots_[i].weight = users_.share(view.sessions[i], slots_[i].weight);
  }
}

/// Work that may be endless does not count: its user's other sessions are not to wait for its end.
void Roster::bound_queues(const View& view) {
  if (!for_several_users_) return;
  users_.share_way();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const SessionView& session = view.sessions[i];
    if (!slots_[i].active) continue;
    if (slots_[i].contends && slots_[i].waits_each) {
      users_.bound(session, cycle(slots_[i]),
                   expected_time(profiles_, slots_[i].launch.kernel, settings_));
    }
    const bool ends = !is_movable(session.running, profiles_, settings_) &&
                      !has_stuck_work(session, view.now, settings_);
    if (session.running.launches == 0 || !ends) continue;
    const Milliseconds overhead = session.running.launches * this->overhead(slots_[i]);
    users_.count(session.user, session.running.expected + overhead);
  }
  later(users_.next_due());
}

Milliseconds Roster::cycle(const Slot& slot) const {
  return expected_time(profiles_, slot.launch.kernel, settings_) + Milliseconds(slot.gap_ms);
}

bool Roster::has_room(const SessionView& session, const Slot& slot) const {
  return !for_several_users_ || !session.waiting ||
         users_.has_room(session.user, cost(*session.waiting, slot));
}

void Roster::queued(const SessionView& session, const Slot& slot) {
  if (for_several_users_) users_.started(session.user, cost(*session.waiting, slot));
}

/// Time for which the launch is expected to keep the device from other users.
Milliseconds Roster::cost(const WaitingLaunch& launch, const Slot& slot) const {
  return expected_time(profiles_, launch.kernel, settings_) + overhead(slot);
}

/// The launches kept the device from others since the last end before theirs, or since they were
/// started.
void Roster::measure_overhead(Slot& slot, const Completion& completion) {
  const Time begin = std::max(completion.started, last_end_);
  last_end_ = std::max(last_end_, completion.ended);
  if (completion.mixed || completion.resized) return;
  const double kept = Milliseconds(completion.ended - begin).count() / completion.launches;
  const Milliseconds expected =
      expected_time(profiles_, completion.kernel, completion.part, settings_);
  const double over = std::clamp(kept - expected.count(), 0.0, kMostOverhead);
  slot.overhead_ms += (over - slot.overhead_ms) / kGapSamples;
}

bool Roster::update(const View& view) {
  const bool changed = align(view);
  const Time now = view.now;
  next_change_ = kNever;
  contenders_.clear();
  int top = std::numeric_limits<int>::min(), bottom = std::numeric_limits<int>::max();
  int highest = top;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const SessionView& session = view.sessions[i];
    Slot& slot = slots_[i];
    slot.weight = session.weight > 0 ? session.weight : 1;
    highest = std::max(highest, session.priority);
    const bool busy = session.waiting || session.running.launches > 0;
    if (session.waiting) note_arrival(slot, session);
    if (busy) choose_kernel(slot, session, now);
    bool holds = busy;
    if (busy && !slot.active) {
      slot.active_since = now;
      // Service is not saved up while a session is away.
      slot.served = std::max(slot.served, least_served_);
    }
    slot.active = busy;
    if (!busy && slot.has_kernel) {
      const Time until = session.idle_since + ticks(settings_.linger);
      const Time hold = session.idle_since + ticks(settings_.priority_hold);
      slot.active = now < until;
      holds = now < hold;
      if (slot.active) later(until);
      if (holds) later(hold);
    }
    if (holds) top = std::max(top, session.priority);
    if (slot.active) bottom = std::min(bottom, session.priority);
  }
  share_by_user(view);
  may_be_preempted_ = highest > top;
  double least = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.contends = slot.active;
    // Without different priorities, the usual case, no session can age.
    if (slot.active && bottom < top) {
      const bool old = aged(slot, view.sessions[i], now);
      slot.contends = view.sessions[i].priority >= top || old;
    }
    if (slot.contends) {
      if (contenders_.empty() || slot.served < least) least = slot.served;
      contenders_.push_back(static_cast<std::uint32_t>(i));
    }
    if (!slot.active) slot.in_turns = false;
  }
  // A launch that cannot be stopped may have taken seconds. Its session need not wait until all
  // others have had as much, one behind the other.
  for (const std::uint32_t i : contenders_) {
    slots_[i].served = std::min(slots_[i].served, least + kMostLead);
  }
  least_served_ = std::max(least_served_, least);
  bound_queues(view);
  return changed;
}

void Roster::finished(const Completion& completion) {
  Slot* const slot = find(completion.session);
  if (!slot) return;
  measure_overhead(*slot, completion);
  const auto alone = profiles_.alone(completion.kernel);
  const Milliseconds work = completion.work(alone);
  slot->served += (work.count() - std::exchange(slot->credited, 0)) / slot->weight;
  account(*slot, completion, alone, work);
}

void Roster::progressed(const Progress& progress) {
  Slot* const slot = find(progress.session);
  const KernelProfile& profile = profiles_.kernel(progress.kernel);
  if (!slot || progress.blocks == 0 || !profile.best_alone().known()) return;
  // Other launches may be queued behind short ones; their ends would not tell which launch the
  // progress belongs to.
  if (!is_long(profile, settings_)) return;
  const double done = profile.best_alone().ms * static_cast<double>(progress.blocks_done) /
                      static_cast<double>(progress.blocks);
  if (done <= slot->credited) return;
  slot->served += (done - slot->credited) / slot->weight;
  slot->credited = done;
}

/// What its device time went to decides on the session's main kernel.
void Roster::account(Slot& slot, const Completion& completion, std::optional<Milliseconds> alone,
                     Milliseconds work) {
  const KernelId main = completion.mixed ? completion.main : completion.kernel;
  const KernelId family = profiles_.family(main);
  // Beside others every kernel has a time of its own: what they take alone can be compared.
  double ms = work.count();
  if (completion.mixed && alone) {
    // Every kernel comes first now and then, and so is known to belong to the program.
    const double first = std::min(alone->count(), ms);
    credit(slot, profiles_.family(completion.kernel), first);
    ms -= first;
  }
  credit(slot, family, ms);
  double all = 0, current = 0, mine = 0;
  for (const Slot::KernelTime& entry : slot.mix) {
    all += entry.ms;
    if (entry.kernel == slot.kernel) current = std::max(current, entry.ms);
    if (entry.kernel == family) mine = std::max(mine, entry.ms);
  }
  if (family != slot.kernel && mine > current * kMainMargin) {
    slot.kernel = family;
    slot.launch.kernel = main;
    slot.launch.blocks = completion.mixed ? 0 : completion.blocks;
    slot.launch.worker_legal = completion.form == Form::kWorker;
    slot.launch.wave = 0;
    slot.has_kernel = true;
  }
  if (all > kMixMs) {
    for (Slot::KernelTime& entry : slot.mix) entry.ms *= kMixMs / all / 2;
  }
}

void Roster::retreat_others(const View& view, Decisions& decisions) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const SessionView& session = view.sessions[i];
    if (!slots_[i].contends && can_retreat(session)) {
      decisions.resize.push_back({.session = session.id, .placement = {}});
    }
  }
}

}  // namespace slate::scheduler
