// Which sessions fit side by side.
#include "scheduler/side_by_side.h"

#include <algorithm>

#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {

// Part of the device that all kernels together may take. Above it they would contend for memory.
constexpr double kMostFilled = 0.25;

}  // namespace

bool SideBySide::may_be_beside(const SessionView& session, const Slot& slot) const {
  const RunningWork& running = session.running;
  if (running.resizable || running.uncertain) return false;
  if (running.launches > 0 && is_long(profiles_.kernel(running.kernel), settings_)) return false;
  const WaitingLaunch& launch = session.waiting ? *session.waiting : slot.launch;
  const KernelProfile& profile = profiles_.kernel(launch.kernel);
  return !is_long(profile, settings_) && alone_measured(profile, launch, settings_) &&
         choose_form(profile, launch, settings_, false) == Form::kNative;
}

bool SideBySide::all_fit(const View& view, const Roster& roster) const {
  double filled = 0;
  for (std::uint32_t i = 0; i < view.sessions.size(); ++i) {
    const SessionView& session = view.sessions[i];
    const Slot& slot = roster[i];
    if (!slot.active) continue;
    if (!slot.contends || !may_be_beside(session, slot)) return false;
    const WaitingLaunch& launch = session.waiting ? *session.waiting : slot.launch;
    // Launches of one stream run one behind the other.
    const bool beside_own = session.waiting && session.waiting->stream_is_free;
    filled += filled_by(launch) + (beside_own ? session.running.filled : 0);
    if (filled > kMostFilled) return false;
  }
  return true;
}

void SideBySide::start(const View& view, std::uint32_t index, Roster& roster,
                       Decisions& decisions) {
  const SessionView& session = view.sessions[index];
  Slot& slot = roster[index];
  Start start =
      start_in_form(session, Form::kNative, view.machine.whole(), profiles_, settings_, false);
  start.tag = kBesideTag;
  start.sampled = true;
  start.repeats = roster.may_repeat(session);
  decisions.start.push_back(start);
  roster.queued(session, slot);
  slot.last_start = view.now;
  // It counts in the turns that may follow.
  slot.received +=
      expected_time(profiles_, session.waiting->kernel, settings_).count() / slot.weight;
}

bool SideBySide::decide(const View& view, Roster& roster, Decisions& decisions) {
  active_ = false;
  // One user's sessions have nobody to be fair to.
  if (!roster.has_several_users()) return false;
  if (!all_fit(view, roster)) {
    again_from_ = view.now + ticks(settings_.rotation);
    return false;
  }
  if (view.now < again_from_) return false;
  active_ = true;
  order_.clear();
  for (const std::uint32_t i : roster.contenders()) {
    if (view.sessions[i].waiting) order_.push_back(i);
  }
  std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return roster[i].last_start; });
  for (const std::uint32_t i : order_) {
    const SessionView& session = view.sessions[i];
    if (!roster.has_room(session, roster[i]) ||
        !may_queue(session, profiles_, settings_, settings_.ahead, settings_.ahead_launches,
                   true)) {
      continue;
    }
    start(view, i, roster, decisions);
  }
  decisions.reason = "side by side";
  return true;
}

}  // namespace slate::scheduler
