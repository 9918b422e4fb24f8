// Trace: what the scheduler did and when, in a ring that forgets the oldest events. It can be read
// as Chrome's trace-event JSON, which Perfetto shows (docs/trace.md). The ring decides nothing.
// Any thread. Adding takes a short lock, allocates nothing and makes no system call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "scheduler/placement.h"
#include "scheduler/profile.h"

namespace slate::daemon {

/// The part that is common to all events of one launch.
struct TraceLaunch {
  std::uint64_t session = 0;
  std::uint64_t launch = 0;  // the caller's number, never used twice in a process
  std::uint32_t kernel = 0;  // number of the name, by Trace::name()
  scheduler::Form form = scheduler::Form::kNative;
  scheduler::Placement placement{};  // placement from this event on
  std::uint64_t blocks = 0;          // blocks of its grid
};

enum class TraceKind : std::uint8_t {
  kSessionBegins,  // name: the program's; blocks: the pid
  kSessionEnds,    // name: the program's; blocks: the pid
  kWaits,          // a launch waits for the scheduler
  kStarts,         // a launch was given to the device
  kEnds,           // a launch has ended; device_ms, launches
  kResized,        // a launch goes on with another placement
  kRetreated,      // a launch was taken off the device
  kResumed,        // a launch is on the device again
  kDecision,       // reason, score
  kPolicy,         // reason: the policy's name
  kMovedOut,  // a session's memory went to the host; blocks: bytes; device_ms: how long it took
  kMovedIn,   // the same, back to the device
};

struct TraceEvent {
  scheduler::Time at{};
  TraceKind kind{};
  TraceLaunch launch;
  double device_ms = 0;
  std::uint32_t launches = 1;
  std::string_view reason{};
  double score = 0;
};

/// A copy of the ring at one time.
struct TraceSnapshot {
  struct Session {
    std::uint32_t name = 0;
    std::uint64_t pid = 0;
  };
  scheduler::Time start{};         // time of the trace's start
  scheduler::Time now{};           // time of the copy
  std::vector<TraceEvent> events;  // events, oldest first
  std::vector<std::string> names;  // names by number
  /// Live sessions, and ended ones with events in the ring.
  std::map<std::uint64_t, Session> sessions;
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Keeps the last `capacity` events; 0: none, and every call returns at once.
  explicit Trace(std::size_t capacity);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The number of a kernel's or program's name. It may allocate: ask once for each function, not
  /// for each launch. Names are limited; further ones get the number of "(other)".
  std::uint32_t name(std::string_view text);

  void session_begins(std::uint64_t session, std::uint32_t program, std::uint32_t pid,
                      scheduler::Time at = Clock::now());
  void session_ends(std::uint64_t session, scheduler::Time at = Clock::now());

  /// `at` of launch_waits() may be earlier than events that were added before.
  void launch_waits(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void launch_starts(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  /// `device_ms`: time by the device's clock; 0: not measured. `launches`: launches that ended
  /// together. Also called for a launch that its session's end dropped before its start.
  void launch_ends(const TraceLaunch& launch, double device_ms, std::uint32_t launches = 1,
                   scheduler::Time at = Clock::now());
  /// `launch.placement` is the new one; for retreated() it is empty.
  void resized(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void retreated(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void resumed(const TraceLaunch& launch, scheduler::Time at = Clock::now());

  /// Memory of a session was moved to the host, or back: `bytes` within `ms`, which end now.
  void memory_moved(std::uint64_t session, bool out, std::uint64_t bytes, double ms,
                    scheduler::Time at = Clock::now());

  /// Adds nothing for an empty `reason`. Requires: `reason` is static text. `score`: see
  /// scheduler::Decisions.
  void decided(std::string_view reason, double score = 0, scheduler::Time at = Clock::now());
  /// Requires: `policy` is static text.
  void policy_changed(std::string_view policy, scheduler::Time at = Clock::now());

  /// Events of the last `seconds`; 0: all of them.
  TraceSnapshot snapshot(double seconds = 0) const;

 private:
  void add(const TraceEvent& event);

  const std::size_t capacity_;
  const scheduler::Time start_ = Clock::now();
  mutable Mutex mutex_;
  std::vector<TraceEvent> ring_ SLATE_GUARDED_BY(mutex_);
  std::size_t next_ SLATE_GUARDED_BY(mutex_) = 0;  // place of the next event once the ring is full
  std::vector<std::string> names_ SLATE_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::uint32_t> numbers_ SLATE_GUARDED_BY(mutex_);
  std::map<std::uint64_t, TraceSnapshot::Session> alive_ SLATE_GUARDED_BY(mutex_);
};

/// The trace-event JSON of a snapshot on `machine`.
std::string chrome_json(const TraceSnapshot& snapshot, const scheduler::Machine& machine);

}  // namespace slate::daemon
