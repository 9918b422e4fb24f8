// Users by id. They are few, so that a search from the first to the last is quickest.
#include "scheduler/user_queues.h"

#include <algorithm>

#include "base/check.h"

namespace slate::scheduler {

const UserQueues::User& UserQueues::find(std::uint32_t user) const {
  const auto at = std::ranges::find(users_, user, &User::id);
  SLATE_CHECK(at != users_.end());
  return *at;
}

void UserQueues::add(const SessionView& session, double weight) {
  auto at = std::ranges::find(users_, session.user, &User::id);
  if (at == users_.end()) {
    at = users_.insert(at, {.id = session.user, .weight = session.user_weight});
  }
  ++at->sessions;
  at->session_weights += weight;
}

double UserQueues::share(const SessionView& session, double weight) const {
  return weight * session.user_weight / find(session.user).session_weights;
}

void UserQueues::count(std::uint32_t user, Milliseconds time) {
  find(user).queued += time;
}

void UserQueues::bound(const SessionView& session, Milliseconds cycle) {
  for (User& user : users_) {
    if (user.id == session.user) continue;
    user.most = std::min(user.most, cycle * (user.weight / session.user_weight));
  }
}

bool UserQueues::has_room(std::uint32_t user, Milliseconds time) const {
  const User& its = find(user);
  return its.queued.count() <= 0 || its.queued + time <= its.most;
}

}  // namespace slate::scheduler
