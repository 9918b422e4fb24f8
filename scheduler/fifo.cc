// fifo: start everything.
#include "scheduler/fifo.h"

#include "scheduler/forms.h"

namespace slate::scheduler {

void FifoPolicy::decide(const View& view, Decisions& decisions) {
  std::uint32_t busy = 0;
  SessionId who = 0;
  for (const SessionView& session : view.sessions) {
    if (session.waiting || session.running.launches > 0) {
      ++busy;
      who = session.id;
    }
  }
  if (busy == 0) return;
  const bool alone = busy == 1;
  if (!alone || only_ != who) ++era_;
  only_ = alone ? who : 0;
  for (const SessionView& session : view.sessions) {
    // A policy that was in use before may have left it off the device.
    if (retreated(session)) decisions.resize.push_back({session.id, view.machine.whole()});
    if (!session.waiting) continue;
    const WaitingLaunch& launch = *session.waiting;
    Form form = choose_form(profiles_.kernel(launch.kernel), launch, settings_, alone);
    // This policy does not call for the next slice, so slices would have no use.
    if (form == Form::kSlice) form = Form::kNative;
    Start start = start_in_form(session, form, view.machine.whole(), profiles_, settings_, alone);
    start.tag = era_;
    start.sampled = true;
    start.repeats = form == Form::kNative;
    decisions.start.push_back(start);
  }
  if (!decisions.start.empty()) decisions.reason = "as they come";
}

void FifoPolicy::finished(const Completion& completion) {
  if (!completion.measured() || only_ != completion.session || completion.tag != era_) return;
  record_alone(profiles_, completion, settings_);
}

}  // namespace slate::scheduler
