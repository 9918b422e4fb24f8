// UserQueues: what all sessions of one user together may do beside other users' sessions: how much
// they have queued on the device, and how often they launch. A program that waits for each launch
// waits for all that is queued before it, and each launch of another session takes some of the way
// to the device, through the driver and the device's front end. Limits by session alone would leave
// a user the less, the more sessions another user opens. A part of Roster, which begins it anew for
// each decision. Thread: the policy's (policy.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/policy.h"

namespace slate::scheduler {

class UserQueues {
 public:
  /// Begins a decision: no session is added, nothing counted, nobody bounded. How often users have
  /// launched is kept.
  void begin(Time now);
  /// Adds an active session with its weight, which is relative to its user's other sessions.
  void add(const SessionView& session, double weight);
  /// Whether sessions of several users were added. Only then time is shared or bounded here.
  bool several() const { return several_; }
  /// Whether no other session of its user was added.
  bool is_only(const SessionView& session) const { return find(session.user).sessions == 1; }
  /// The session's weight relative to all sessions that were added: each user has a share by its
  /// weight, however many sessions it has, and its sessions have parts of it by theirs.
  double share(const SessionView& session, double weight) const;

  /// Counts work of the user on the device that ends in `time` and that nobody can take off it.
  void count(std::uint32_t user, Milliseconds time) { find(user).queued += time; }
  /// Leaves half of the way to the device to others, whatever the sessions of one user launch. One
  /// session by itself cannot take more.
  void share_way();
  /// Bounds the other users: the session's program waits for each launch, and takes `cycle` from
  /// one to the next when alone, `busy` of it on the device. Users of the same weight may queue as
  /// much as one cycle, so that the program goes at least half as fast as alone where it needs the
  /// whole device. By their launches it loses a twentieth of its time. Users of other weights may
  /// do as much more or less.
  void bound(const SessionView& session, Milliseconds cycle, Milliseconds busy);
  /// Whether the user may queue a launch of `time` now. Where it has nothing queued, only how often
  /// it launches counts.
  bool has_room(std::uint32_t user, Milliseconds time) const;
  /// Counts a launch that is started now.
  void started(std::uint32_t user, Milliseconds time);
  /// When a user that launched too often may launch again; kNever: none did.
  Time next_due() const;

 private:
  struct User {
    std::uint32_t id = 0;
    double weight = 1;
    std::uint32_t sessions = 0;
    double session_weights = 0;  // sum of the weights of its sessions
    Milliseconds queued{};
    Milliseconds most = kNoBound;  // bound of `queued`
    Milliseconds interval{};       // least mean time between two launches
    Time paid_until{};             // end of the intervals of the launches so far
  };
  static constexpr Milliseconds kNoBound{1e300};

  /// Requires: a session of the user was added.
  const User& find(std::uint32_t user) const;
  User& find(std::uint32_t user) { return const_cast<User&>(std::as_const(*this).find(user)); }
  static Time due(const User& user);

  std::vector<User> users_;
  Time now_{};
  bool several_ = false;
};

}  // namespace slate::scheduler
