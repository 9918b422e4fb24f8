// Users by id. They are few, so that a search from the first to the last is quickest.
#include "scheduler/user_queues.h"

#include <algorithm>

#include "base/check.h"

namespace slate::scheduler {
namespace {

// An H100's driver brings about 600,000 tiny launches to the device in a second. Threads that
// launch without pause can keep another one from its lock for ever.
constexpr Milliseconds kHalfOfTheWay{0.0033};
// Time that a launch of 2 us takes from a program that waits for each of its own. On an H100 it
// loses 8 % beside 200,000 in a second, and 16 % beside 400,000 (docs/results/users.md).
constexpr Milliseconds kTaken{0.0004};
constexpr double kMostTaken = 0.05;  // part of the time on the device that it may lose so
// Time in which a user may launch at once what its interval allows for that time: timers are few
// then, and late ones do no harm.
constexpr Milliseconds kBurst{0.1};

}  // namespace

void UserQueues::begin(Time now) {
  now_ = now;
  several_ = false;
  std::erase_if(users_,
                [now](const User& user) { return user.sessions == 0 && user.paid_until < now; });
  for (User& user : users_) user = {.id = user.id, .paid_until = user.paid_until};
}

const UserQueues::User& UserQueues::find(std::uint32_t user) const {
  const auto at = std::ranges::find(users_, user, &User::id);
  SLATE_CHECK(at != users_.end());
  return *at;
}

void UserQueues::add(const SessionView& session, double weight) {
  auto at = std::ranges::find(users_, session.user, &User::id);
  if (at == users_.end()) at = users_.insert(at, {.id = session.user});
  at->weight = session.user_weight;
  ++at->sessions;
  at->session_weights += weight;
  several_ |= std::ranges::any_of(
      users_, [&](const User& user) { return user.sessions > 0 && user.id != session.user; });
}

double UserQueues::share(const SessionView& session, double weight) const {
  return weight * session.user_weight / find(session.user).session_weights;
}

void UserQueues::share_way() {
  for (User& user : users_) {
    if (user.sessions > 1) user.interval = kHalfOfTheWay;
  }
}

void UserQueues::bound(const SessionView& session, Milliseconds cycle, Milliseconds busy) {
  for (User& user : users_) {
    if (user.id == session.user) continue;
    const double ratio = user.weight / session.user_weight;
    user.most = std::min(user.most, cycle * ratio);
    if (cycle.count() <= 0) continue;
    user.interval = std::max(user.interval, kTaken * (busy / cycle / (kMostTaken * ratio)));
  }
}

Time UserQueues::due(const User& user) {
  return user.interval.count() > 0 ? user.paid_until - ticks(kBurst) : Time{};
}

bool UserQueues::has_room(std::uint32_t user, Milliseconds time) const {
  const User& its = find(user);
  if (due(its) > now_) return false;
  return its.queued.count() <= 0 || its.queued + time <= its.most;
}

void UserQueues::started(std::uint32_t user, Milliseconds time) {
  User& its = find(user);
  its.queued += time;
  its.paid_until = std::max(its.paid_until, now_) + ticks(its.interval);
}

Time UserQueues::next_due() const {
  Time first = kNever;
  for (const User& user : users_) {
    if (user.sessions > 0 && due(user) > now_) first = std::min(first, due(user));
  }
  return first;
}

}  // namespace slate::scheduler
