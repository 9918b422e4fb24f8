// UserQueues: what all sessions of one user together have queued on the device, and how much that
// may be beside another user's program that waits for each launch. Such a program waits for all
// that is queued before its launch. Limits by session alone would leave it the less, the more
// sessions the other user opens. A part of Roster, which clears it for each decision. Thread: the
// policy's (policy.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/policy.h"

namespace slate::scheduler {

class UserQueues {
 public:
  void clear() { users_.clear(); }
  /// Adds an active session with its weight, which is relative to its user's other sessions.
  void add(const SessionView& session, double weight);
  /// Whether sessions of several users were added. Only then anything is shared or bounded here.
  bool several() const { return users_.size() > 1; }
  /// Whether no other session of its user was added.
  bool is_only(const SessionView& session) const { return find(session.user).sessions == 1; }
  /// The session's weight relative to all sessions that were added: each user has a share by its
  /// weight, however many sessions it has, and its sessions have parts of it by theirs.
  double share(const SessionView& session, double weight) const;

  /// Counts work of the user on the device that ends in `time` and that nobody can take off it.
  void count(std::uint32_t user, Milliseconds time);
  /// Bounds what the other users may have queued: the session's program waits for each launch, and
  /// takes `cycle` from one to the next when alone. Users of the same weight may queue as much as
  /// one cycle; others in proportion. So the program goes at least half as fast as alone.
  void bound(const SessionView& session, Milliseconds cycle);
  /// Whether the user may queue a launch of `time`. Where it has nothing queued it always may.
  bool has_room(std::uint32_t user, Milliseconds time) const;

 private:
  struct User {
    std::uint32_t id = 0;
    double weight = 1;
    std::uint32_t sessions = 0;
    double session_weights = 0;  // sum of the weights of its sessions
    Milliseconds queued{};
    Milliseconds most = kNoBound;
  };
  static constexpr Milliseconds kNoBound{1e300};

  /// Requires: a session of the user was added.
  const User& find(std::uint32_t user) const;
  User& find(std::uint32_t user) { return const_cast<User&>(std::as_const(*this).find(user)); }

  std::vector<User> users_;
};

}  // namespace slate::scheduler
