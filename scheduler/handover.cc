// Counting the launches of former plans, session by session.
#include "scheduler/handover.h"

#include <algorithm>

#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {
// Of its own time, how much a launch may overlap with work of a former plan and still count.
constexpr double kOverlap = 0.1;
}  // namespace

void Handover::begin(const View& view, Roster& roster, const ProfileTable& profiles,
                     const Settings& settings) {
  old_work_ = 0;
  for (std::size_t i = 0; i < view.sessions.size(); ++i) {
    const SessionView& session = view.sessions[i];
    const bool comes = worth_resizing(session, profiles, settings);
    roster[i].old_work = comes ? 0 : session.running.launches;
    old_work_ += roster[i].old_work;
  }
  old_end_ = view.now;
}

void Handover::wait_for(Slot& slot, std::uint32_t launches) {
  slot.old_work += launches;
  old_work_ += launches;
}

void Handover::ended(Slot& slot, const Completion& completion) {
  const std::uint32_t launches = std::min(slot.old_work, completion.launches);
  if (launches == 0) return;
  slot.old_work -= launches;
  old_work_ -= launches;
  old_end_ = std::max(old_end_, completion.ended);
}

void Handover::settle(const View& view, Roster& roster) {
  if (old_work_ == 0) return;
  std::uint32_t left = 0;
  for (std::size_t i = 0; i < view.sessions.size(); ++i) {
    const std::uint32_t running = view.sessions[i].running.launches;
    if (roster[i].old_work > running) {
      roster[i].old_work = running;
      old_end_ = std::max(old_end_, view.now);
    }
    left += roster[i].old_work;
  }
  old_work_ = left;  // without that of sessions that have gone
}

bool Handover::clean(const Completion& completion) const {
  if (completion.resized || old_work_ > 0) return false;
  const auto ran = completion.ended - completion.started;
  const auto overlap = old_end_ - completion.started;
  return overlap <= std::chrono::duration_cast<Time::duration>(ran * kOverlap);
}

}  // namespace slate::scheduler
