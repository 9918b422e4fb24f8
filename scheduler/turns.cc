// Turns: least received first, a quantum each. Launches are charged when they are started, as
// expected, and corrected when they end; long resizable ones are charged by the time that they are
// on the device, since they are taken off it when their turn is over.
#include "scheduler/turns.h"

#include <algorithm>
#include <limits>

#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {
constexpr std::uint32_t kNobody = ~0U;
constexpr double kFarBehind = 1.5;  // quanta
// Longest time that a turn waits for the holder's next launch after it has started one, and at most
// half of what it has queued. Behind a long launch nothing is queued: there the device is idle
// meanwhile, which costs less than another session's turn.
constexpr Milliseconds kComing{0.5}, kComingAfterLong{0.4};
// Mean gaps for which the device is kept for a program that waits for each launch.
constexpr double kGaps = 2;
}  // namespace

struct Turns::Scene {
  const View& view;
  Roster& roster;
  std::span<const std::uint32_t> who;
  const Rules& rules;
  Decisions& decisions;
  std::size_t first_start;  // of this call, in decisions.start
  bool single;

  const SessionView& session(std::uint32_t index) const { return view.sessions[index]; }
  bool started(SessionId id) const {
    return std::any_of(decisions.start.begin() + static_cast<std::ptrdiff_t>(first_start),
                       decisions.start.end(), [id](const Start& s) { return s.session == id; });
  }
};

bool Turns::by_time(const SessionView& session) const {
  return session.running.launches > 0 && session.running.resizable &&
         is_long(profiles_.kernel(session.running.kernel), settings_);
}

/// The same of a kernel of which it is known: taking it off the device costs about a task's time.
bool Turns::has_price(const SessionView& session) const {
  return by_time(session) && profiles_.kernel(session.running.kernel).best_alone().known();
}

/// Time until which a turn of long work of unknown time is not ended: cut off before it shows any
/// progress, it would stay unknown for ever.
Time Turns::known_at(const Scene& scene, const SessionView& session) const {
  const bool unknown = by_time(session) && on_device(session) && !has_price(session);
  return unknown ? began_ + ticks(scene.rules.unknown_turn) : Time{};
}

/// Whether the device is kept for the holder's next launch although nothing of it is queued: its
/// program waits for each, and another user's launch would keep it waiting for longer than it
/// takes from one launch to the next.
bool Turns::is_kept(const Scene& scene, std::uint32_t holder) const {
  const SessionView& session = scene.session(holder);
  const Slot& slot = scene.roster[holder];
  if (!slot.waits_each || budget_ <= 0) return false;
  return std::ranges::any_of(scene.who, [&](std::uint32_t i) {
    const SessionView& other = scene.session(i);
    if (other.user == session.user || !wants(scene, i)) return false;
    return !other.waiting ||
           expected_time(profiles_, other.waiting->kernel, settings_) > scene.roster.cycle(slot);
  });
}

/// Until when the holder's next launch is waited for.
Time Turns::coming_until(const Scene& scene, std::uint32_t holder) const {
  const SessionView& session = scene.session(holder);
  const Slot& slot = scene.roster[holder];
  const RunningWork& running = session.running;
  if (session.waiting || running.resizable) return {};
  if (is_kept(scene, holder)) {
    return running.launches > 0 ? kNever
                                : session.idle_since + ticks(kGaps * Milliseconds(slot.gap_ms));
  }
  if (running.launches > 0) {
    const Milliseconds coming = std::min(kComing, running.expected / 2);
    return slot.waits_each ? Time{} : running.started + ticks(coming);
  }
  const bool was_long = is_long(profiles_.kernel(slot.launch.kernel), settings_);
  return was_long && !slot.pauses && budget_ > 0 ? session.idle_since + ticks(kComingAfterLong)
                                                 : Time{};
}

bool Turns::wants(const Scene& scene, std::uint32_t index) const {
  const SessionView& session = scene.session(index);
  return (session.waiting || retreated(session)) && !scene.started(session.id) &&
         !is_stuck(scene, index);
}

bool Turns::may_start(const Scene& scene, std::uint32_t index) const {
  const SessionView& session = scene.session(index);
  if (!scene.roster.has_room(session, scene.roster[index])) return false;
  const bool deep = scene.single && !scene.roster.may_be_preempted();
  // A program that waits for each launch waits for all that is queued before it.
  const bool hurries = std::ranges::any_of(
      scene.who, [&](std::uint32_t i) { return i != index && scene.roster[i].pauses; });
  const auto ahead = deep      ? settings_.ahead_alone
                     : hurries ? std::min(settings_.ahead, settings_.search_ahead)
                               : settings_.ahead;
  const auto launches = deep ? settings_.ahead_alone_launches : settings_.ahead_launches;
  return may_queue(session, profiles_, settings_, ahead, launches, deep) ||
         runs_beside(session, profiles_, settings_);
}

bool Turns::is_stuck(const Scene& scene, std::uint32_t index) const {
  const SessionView& session = scene.session(index);
  return session.waiting && has_stuck_work(session, scene.view.now, settings_) &&
         !may_start(scene, index);
}

std::optional<Time> Turns::held_until(const Scene& scene, std::uint32_t index) const {
  std::optional<Time> until;
  for (std::uint32_t i = 0; i < scene.view.sessions.size(); ++i) {
    const SessionView& other = scene.session(i);
    if (i == index || !scene.roster[i].contends) continue;
    if (!has_lasting_work(other, scene.view.now, settings_)) continue;
    const Time due = overdue_at(other, settings_);
    if (due > scene.view.now) until = std::min(until.value_or(kNever), due);
  }
  return until;
}

std::uint32_t Turns::next(const Scene& scene, std::uint32_t after) const {
  std::uint32_t best = kNobody;
  // Equals take turns: the first one behind the last holder is next.
  const auto behind = [&](std::uint32_t i) {
    return i > after ? i - after : i + scene.view.sessions.size() - after;
  };
  for (const std::uint32_t i : scene.who) {
    const SessionView& session = scene.session(i);
    // A session that another plan left on a part of the device is to have all of it.
    const bool on_part = (by_time(session) || retreated(session)) &&
                         session.running.placement != scene.view.machine.whole();
    if (!session.waiting && !on_part) continue;
    if (!scene.single && is_stuck(scene, i)) continue;
    if (best == kNobody) {
      best = i;
      continue;
    }
    const double mine = scene.roster[i].received, its = scene.roster[best].received;
    if (mine < its || (mine == its && behind(i) < behind(best))) best = i;
  }
  return best;
}

bool Turns::over(const Scene& scene, std::uint32_t holder) const {
  const SessionView& session = scene.session(holder);
  if (scene.view.now < known_at(scene, session)) return false;
  const bool started = scene.started(session.id);
  const bool idle = !session.waiting && !retreated(session) && !by_time(session) && !started &&
                    scene.view.now >= coming_until(scene, holder);
  // A session far behind goes at once, as programs do that wait for each launch. Where work was
  // taken off the device, or would be, it has to be further behind, since the change has its price.
  // A program that waits for each launch need not pay for that.
  const bool done = idle || budget_ <= 0 || is_stuck(scene, holder);
  const bool goes_off = has_price(session);
  const double received = scene.roster[holder].received;
  return std::ranges::any_of(scene.who, [&](std::uint32_t i) {
    const bool is_off = by_time(scene.session(i));
    const bool pays = is_off || (goes_off && !scene.roster[i].pauses);
    const Milliseconds turn = pays ? scene.rules.long_quantum : scene.rules.quantum;
    const bool hurries =
        scene.roster[i].waits_each && !goes_off && scene.session(i).user != session.user;
    const double behind = hurries ? 0 : kFarBehind * turn.count();
    const bool far = received - scene.roster[i].received > behind;
    return i != holder && (done || far) && wants(scene, i);
  });
}

void Turns::begin(Scene& scene, std::uint32_t index) {
  const Slot& slot = scene.roster[index];
  if (!held_ || holder_ != slot.id) ++turn_;
  held_ = true;
  holder_ = slot.id;
  const SessionView& session = scene.session(index);
  // As long as that of the long work that was taken off for it: both pay for the change.
  const bool after_long = std::ranges::any_of(
      scene.who, [&](std::uint32_t i) { return i != index && has_price(scene.session(i)); });
  const bool is_long_turn = after_long || by_time(session) ||
                            (session.waiting && session.waiting->worker_legal &&
                             is_long(profiles_.kernel(session.waiting->kernel), settings_));
  budget_ = (is_long_turn ? scene.rules.long_quantum : scene.rules.quantum).count() * slot.weight;
  received_ = std::max(received_, slot.received);
  began_ = charged_until_ = scene.view.now;
}

void Turns::charge_time(Scene& scene) {
  for (const std::uint32_t i : scene.who) {
    const SessionView& session = scene.session(i);
    if (!held_ || session.id != holder_) continue;
    if (by_time(session) && on_device(session)) charge(scene.roster[i], scene.view.now);
    charged_until_ = scene.view.now;
  }
}

/// The holder had the device until then.
void Turns::charge(Slot& slot, Time until) {
  const double ms = Milliseconds(until - charged_until_).count();
  if (ms <= 0) return;
  slot.received += ms / slot.weight;
  budget_ -= ms;
  charged_until_ = until;
}

void Turns::retreat_others(Scene& scene, std::uint32_t holder) {
  for (const std::uint32_t i : scene.who) {
    const SessionView& session = scene.session(i);
    if (i == holder || !on_device(session)) continue;
    if (worth_resizing(session, profiles_, settings_)) {
      scene.decisions.resize.push_back({.session = session.id, .placement = {}});
    }
  }
}

Turns::Served Turns::serve(Scene& scene, std::uint32_t index) {
  const SessionView& session = scene.session(index);
  const Placement whole = scene.view.machine.whole();
  if (scene.started(session.id)) return Served::kStarted;
  if (worth_resizing(session, profiles_, settings_) && session.running.placement != whole) {
    // Not before the device is empty: Resize takes effect at once, unlike a chained launch.
    const bool free = std::ranges::none_of(scene.who, [&](std::uint32_t i) {
      const SessionView& other = scene.session(i);
      return i != index && on_device(other) && scene.view.now < overdue_at(other, settings_) &&
             (other.running.fixed || !worth_resizing(other, profiles_, settings_));
    });
    if (free || !retreated(session)) {
      scene.decisions.resize.push_back({.session = session.id, .placement = whole});
      charged_until_ = scene.view.now;
    }
    return Served::kEnough;
  }
  if (!session.waiting) return by_time(session) ? Served::kEnough : Served::kNothing;
  if (!may_start(scene, index)) return Served::kEnough;
  // It waits here instead of on the device, where it could not begin after all.
  if (const auto until = held_until(scene, index)) {
    scene.decisions.again = std::min(scene.decisions.again, *until);
    return Served::kEnough;
  }

  const WaitingLaunch& launch = *session.waiting;
  const KernelProfile& profile = profiles_.kernel(launch.kernel);
  const Form form = choose_form(profile, launch, settings_, true);
  Start start = start_in_form(session, form, whole, profiles_, settings_, true);
  start.alone = scene.rules.alone;
  start.tag = scene.rules.tag;
  start.sampled = scene.rules.sampled;
  start.tried = form != profile.best_form();
  start.repeats = scene.rules.repeats && form == Form::kNative;
  scene.decisions.start.push_back(start);
  Slot& slot = scene.roster[index];
  scene.roster.queued(session, slot);
  slot.last_start = scene.view.now;
  if (form != Form::kWorker || !is_long(profile, settings_)) {
    const Milliseconds time =
        expected_time(profiles_, launch.kernel, part_of(launch, start), settings_);
    const double ms = (time + scene.roster.overhead(slot)).count();
    // Others were kept waiting meanwhile.
    const bool was_kept = began_ < session.idle_since && is_kept(scene, index);
    const double kept = was_kept ? Milliseconds(scene.view.now - session.idle_since).count() : 0;
    slot.received += (ms + kept) / slot.weight;
    budget_ -= ms + kept;
  }
  return Served::kStarted;
}

void Turns::decide(const View& view, Roster& roster, std::span<const std::uint32_t> who,
                   const Rules& rules, Decisions& decisions) {
  Scene scene{view, roster, who, rules, decisions, decisions.start.size(), who.size() == 1};
  charge_time(scene);
  std::uint32_t holder = kNobody;
  for (const std::uint32_t i : who) {
    Slot& slot = roster[i];
    // Turns are not saved up while a session is away.
    if (!slot.in_turns) slot.received = std::max(slot.received, received_);
    slot.in_turns = true;
    if (held_ && slot.id == holder_) holder = i;
  }
  for (std::size_t round = 0; round <= who.size(); ++round) {
    if (holder == kNobody || over(scene, holder)) {
      const std::uint32_t chosen = next(scene, holder == kNobody ? 0 : holder);
      // A session that has started in this call may have more launches, which the next call will
      // show.
      if (chosen == kNobody || scene.started(view.sessions[chosen].id)) break;
      holder = chosen;
      begin(scene, holder);
    }
    const Served served = serve(scene, holder);
    // One that started may have more: the caller asks again.
    if (served == Served::kEnough || (served == Served::kStarted && budget_ > 0)) break;
    if (!over(scene, holder)) break;
  }
  if (holder == kNobody) return;
  const SessionView& held = scene.session(holder);
  for (const Time until : {coming_until(scene, holder), known_at(scene, held)}) {
    if (until > view.now) decisions.again = std::min(decisions.again, until);
  }
  retreat_others(scene, holder);
  if (scene.single) {
    budget_ = 0;  // a session that comes has the next turn
    received_ = std::max(received_, roster[holder].received);
  } else if (by_time(held) && budget_ > 0) {
    decisions.again = std::min(decisions.again, view.now + ticks(Milliseconds(budget_)));
  }
}

void Turns::finished(Roster& roster, const Completion& completion) {
  Slot* slot = roster.find(completion.session);
  if (!slot || !slot->in_turns || completion.resized) return;
  const KernelProfile& profile = profiles_.kernel(completion.kernel);
  if (completion.form == Form::kWorker && is_long(profile, settings_)) {
    if (held_ && completion.session == holder_) charge(*slot, completion.ended);
    return;
  }
  const Milliseconds expected =
      completion.mixed ? completion.alone
                       : expected_time(profiles_, completion.kernel, completion.part, settings_);
  const double off = (completion.device_time - expected).count();
  slot->received += off * completion.launches / slot->weight;
  if (held_ && completion.session == holder_) budget_ -= off * completion.launches;
}

void Turns::reset(Roster& roster, Milliseconds most_owed) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t i : roster.contenders()) least = std::min(least, roster[i].served);
  for (std::size_t i = 0; i < roster.size(); ++i) {
    roster[i].received = std::clamp(roster[i].served - least, 0.0, most_owed.count());
  }
  received_ = 0;
  held_ = false;
  budget_ = 0;
}

}  // namespace slate::scheduler
