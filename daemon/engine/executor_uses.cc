// What sessions have on the device and what they wait for, for BlockingWatch.
#include <algorithm>

#include "daemon/engine/executor.h"
#include "daemon/engine/executor_client.h"
#include "scheduler/forms.h"

namespace slate::daemon {
namespace {

/// Whether workers of the lane are on the device although it was called off.
bool stays(const ActiveLane& lane) {
  return lane.begun && lane.called_off && !lane.left;
}

bool has(const LaunchBatch& batch, std::uint64_t serial) {
  return std::ranges::find(batch.serials, serial) != batch.serials.end();
}

}  // namespace

std::vector<SessionUse> Executor::uses() const {
  std::vector<SessionUse> uses;
  const MutexLock lock(mutex_);
  for (const auto& client : clients_) uses.push_back(use_of(*client));
  return uses;
}

bool Executor::is_alone() const {
  const MutexLock lock(mutex_);
  return clients_.size() == 1;
}

/// Whether a launch that waits on the device for the other's starts still has to.
bool Executor::is_waited_for(const Earlier& other) const {
  if (std::ranges::find(clients_, other.client) == clients_.end()) return false;
  const Client& client = *other.client;
  const MutexLock lanes(client.mutex);
  for (const UnendedStarts::One& one : client.unended.all()) {
    if (one.number > other.start) continue;
    if (!one.lane) return true;
    for (const ActiveLane& lane : client.lanes) {
      if (has(*lane.batch, one.serial) && !lane.left) return true;
    }
  }
  return false;
}

SessionUse Executor::use_of(const Client& client) const {
  const scheduler::SessionView& view = views_[client.index];
  const scheduler::RunningWork& running = view.running;
  SessionUse use{.session = view.id,
                 .uid = view.user,
                 .priority = view.priority,
                 .most_blocking = client.spec.most_blocking,
                 .placement = running.placement};
  const auto unended = client.unended.all();
  const auto oldest = std::ranges::find(unended, false, &UnendedStarts::One::lane);
  // Before it was carried out it may wait in the driver itself.
  if (running.fixed && oldest->number <= client.carried_out.load()) {
    use.holds_since = running.fixed_since;
    use.leaves_room = running.fixed_filled < 1;
    if (!running.uncertain && !running.resizable) use.expected = running.expected;
  }
  if (!unended.empty() && client.chained != 0 && unended.front().number >= client.chained) {
    for (const Earlier& other : client.chained_to) {
      if (is_waited_for(other)) use.waits_for.push_back(other.client->spec.session);
    }
    if (!use.waits_for.empty()) use.waits_since = client.chained_at;
  }
  // For another engine, else.
  const bool waits_here = time_ == nullptr || !time_->holds();
  if (view.waiting && running.launches == 0 && waits_here) use.waits_since = view.waiting->since;
  bool disobeys = false;
  const MutexLock lanes(client.mutex);
  for (const ActiveLane& lane : client.lanes) {
    if (stays(lane)) {
      disobeys = true;
      use.holds_since = std::min(use.holds_since.value_or(scheduler::kNever), *lane.called_off);
      use.leaves_room = false;
    } else if (scheduler::retreated(view) && lane.called_off) {
      use.waits_since = std::min(use.waits_since.value_or(scheduler::kNever), *lane.called_off);
    }
  }
  if (disobeys) use.waits_since.reset();
  return use;
}

}  // namespace slate::daemon
