// timeslice: turns among the sessions of the highest priority.
#include "scheduler/timeslice.h"

#include <algorithm>

#include "scheduler/forms.h"

namespace slate::scheduler {
namespace {
// Tags: which launches had the device to themselves.
constexpr std::uint64_t kAloneTag = 1;
constexpr std::uint64_t kNotAloneTag = 2;
}  // namespace

bool goes_beside(const View& view, Roster& roster, const Settings& settings) {
  const auto contenders = roster.contenders();
  for (std::size_t i = 0; i < view.sessions.size(); ++i) {
    const SessionView& session = view.sessions[i];
    const bool others = contenders.size() > (roster[i].contends ? 1 : 0);
    if (others && view.now >= overdue_at(session, settings)) return true;
    if (roster[i].contends || !session.running.fixed) continue;
    if (session.running.expected > settings.ahead) return true;
  }
  return false;
}

void TimeslicePolicy::decide(const View& view, Decisions& decisions) {
  roster_.update(view);
  decisions.again = roster_.next_change();
  if (roster_.contenders().empty()) return;
  roster_.retreat_others(view, decisions);
  if (side_by_side_.decide(view, roster_, decisions)) return;
  const bool beside = goes_beside(view, roster_, settings_);
  turns_.decide(view, roster_, roster_.contenders(),
                {.quantum = settings_.quantum,
                 .long_quantum = settings_.quantum,
                 .tag = beside ? kNotAloneTag : kAloneTag,
                 .alone = !beside},
                decisions);
  if (!decisions.start.empty() || !decisions.resize.empty()) decisions.reason = "turn";
}

void TimeslicePolicy::finished(const Completion& completion) {
  if (!completion.timed) return;
  turns_.finished(roster_, completion);
  roster_.finished(completion);
  if (completion.tag == kAloneTag) record_alone(profiles_, completion, settings_);
}

}  // namespace slate::scheduler
