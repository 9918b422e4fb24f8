// EarlierLaunches: launches without a fence from before a second user came. They may touch all
// memory of the device, so the newcomer begins only when they are done. Pure: the caller tells the
// time and the sessions, and waits. Thread: one at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace slate::daemon {

/// A session's thread that launches, as others see it. Any thread.
class Launcher {
 public:
  /// Tells the launch from others that is being carried out and may be without a fence; 0: none is.
  virtual std::uint64_t bare_turn() const = 0;
  /// Marks the newest launch without a fence.
  virtual void mark_unfenced() = 0;
  /// Whether a launch without a fence up to the mark may run.
  virtual bool runs_marked() const = 0;

 protected:
  ~Launcher() = default;
};

class EarlierLaunches {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// After so long all threads see that the fence is on, and others see which launches they had
  /// begun before.
  static constexpr std::chrono::milliseconds kSeen{1};

  struct Session {
    std::uint64_t id = 0;
    uid_t uid = 0;
    Launcher* launcher = nullptr;
  };

  /// The fence is on from now on. `sessions`: those that have launched without it.
  void fence_came(Time now, std::span<const Session> sessions);
  /// The sessions of other users than `uid` whose earlier launches may not be done.
  std::vector<std::uint64_t> of_others(uid_t uid, Time now, std::span<const Session> sessions);

 private:
  /// A session that may be carrying out a launch without the fence.
  struct Undecided {
    Time since;                              // when the fence came
    std::optional<std::uint64_t> bare_turn;  // as found once kSeen was over; nullopt: not yet
  };

  bool may_run(const Session& session, Time now);

  std::map<std::uint64_t, Undecided> undecided_;  // by session
};

}  // namespace slate::daemon
