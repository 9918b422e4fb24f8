// The engine's share of the device's time beside other engines (TimeShare). While the engine is
// ahead, the policy is not asked: what comes waits as it does for a decision, and launches that can
// be called back rest.
#include <algorithm>
#include <set>

#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"

namespace slate::daemon {

using Clock = std::chrono::steady_clock;

void Executor::share_time(std::unique_ptr<TimePage> page, std::uint64_t engine) {
  const MutexLock lock(mutex_);
  if (time_ == nullptr && page != nullptr)
    time_ = std::make_unique<TimeSlot>(std::move(page), engine);
  if (time_ != nullptr) look_at_time(Clock::now());
}

/// What the engine has now. Users count as sessions of several users do in one engine (Roster).
scheduler::EngineLoad Executor::load(scheduler::Time now) const {
  scheduler::EngineLoad load;
  std::set<std::uint32_t> users;
  for (std::size_t i = 0; i < awake_; ++i) {
    const scheduler::SessionView& view = views_[i];
    const auto unended = clients_[i]->unended.all();
    const bool lingers = now - view.idle_since <= scheduler::ticks(settings_.linger);
    if (!view.waiting && unended.empty() && !lingers) continue;
    if (users.insert(view.user).second) load.weight += view.user_weight;
    // During a hold lanes rest, and wait to go on.
    const bool rests = time_->holds() && !unended.empty() && unended.front().lane;
    load.waits |= view.waiting || rests;
    load.runs |= !unended.empty() && !rests;
  }
  return load;
}

/// Brings the share up to `now`. Returns whether launches wait until other engines have caught up.
bool Executor::waits_for_engines(scheduler::Time now) {
  const bool held = time_->holds();
  time_->update(now, load(now));
  if (time_->again() < sleeps_until_) tick_.notify_one();
  if (time_->holds() && !held) hold(now);
  if (held && !time_->holds()) release(now);
  return time_->holds();
}

/// As waits_for_engines(). What has waited until now is decided on.
void Executor::look_at_time(scheduler::Time now) {
  const bool held = time_->holds();
  if (!waits_for_engines(now) && held) decide(now);
}

void Executor::hold(scheduler::Time now) {
  trace_.decided("held until other engines have had their time", 0, now);
  changes_.fetch_add(1);  // no launch repeats an earlier decision
  take_lanes_off();
}

void Executor::release(scheduler::Time now) {
  trace_.decided("other engines have had their time", 0, now);
  // No session of this engine is to blame for the time until now.
  for (scheduler::SessionView& view : views_) {
    if (view.waiting) view.waiting->since = now;
  }
  put_lanes_back();
}

}  // namespace slate::daemon
