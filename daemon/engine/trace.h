// Trace: what the scheduler did and when, in a ring in memory that forgets the oldest; and the same
// as Chrome's trace-event JSON, which Perfetto shows (docs/trace.md). The ring says what happened
// and decides nothing. Any thread; adding takes a short lock, allocates nothing and makes no system
// call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/profile.h"

namespace slate::daemon {

/// What the events of one launch have in common.
struct TraceLaunch {
  std::uint64_t session = 0;
  std::uint64_t launch = 0;  // the caller's number, never used twice in a process
  std::uint32_t kernel = 0;  // of Trace::name()
  scheduler::Form form = scheduler::Form::kNative;
  scheduler::Placement placement{};  // from this event on
  std::uint64_t blocks = 0;          // of its grid
};

enum class TraceKind : std::uint8_t {
  kSessionBegins,  // name: the program; blocks: the pid
  kSessionEnds,    // the same
  kWaits,          // a launch waits for the scheduler
  kStarts,         // ... was given to the device
  kEnds,           // ... has ended; device_ms, launches
  kResized,        // ... goes on with another placement
  kRetreated,      // ... was taken off the device
  kResumed,        // ... is on it again
  kDecision,       // reason, score
  kPolicy,         // reason: the policy's name
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

/// The ring at one time; its own copy.
struct TraceSnapshot {
  struct Session {
    std::uint32_t name = 0;
    std::uint64_t pid = 0;
  };
  scheduler::Time start{};                    // of the trace
  scheduler::Time now{};                      // when the copy was made
  std::vector<TraceEvent> events;             // oldest first
  std::vector<std::string> names;             // by number
  std::map<std::uint64_t, Session> sessions;  // alive, or ended with an event left in the ring
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Keeps the last `capacity` events; 0: none, and every call returns at once.
  explicit Trace(std::size_t capacity);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The number of a kernel's or program's name; to be asked once a function, not once a launch (it
  /// may allocate). Bounded: a client that makes up names without end gets the number of "(other)".
  std::uint32_t name(std::string_view text);

  void session_begins(std::uint64_t session, std::uint32_t program, std::uint32_t pid,
                      scheduler::Time at = Clock::now());
  void session_ends(std::uint64_t session, scheduler::Time at = Clock::now());

  /// `at` of launch_waits() may be earlier than events that were added before.
  void launch_waits(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void launch_starts(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  /// `device_ms`: how long it ran by the device's clock; 0: not measured. Also for a launch that
  /// was dropped unstarted, when its session ends.
  /// `launches`: that came together.
  void launch_ends(const TraceLaunch& launch, double device_ms, std::uint32_t launches = 1,
                   scheduler::Time at = Clock::now());
  /// `launch.placement` is the new one; for retreated() it is empty.
  void resized(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void retreated(const TraceLaunch& launch, scheduler::Time at = Clock::now());
  void resumed(const TraceLaunch& launch, scheduler::Time at = Clock::now());

  /// Requires: `reason` is static text. Nothing is added for an empty one.
  /// `score`: see scheduler::Decisions.
  void decided(std::string_view reason, double score = 0, scheduler::Time at = Clock::now());
  /// Requires: `policy` is static text.
  void policy_changed(std::string_view policy, scheduler::Time at = Clock::now());

  /// Events of the last `seconds` before now; all of them for 0.
  TraceSnapshot snapshot(double seconds = 0) const;

 private:
  void add(const TraceEvent& event);

  const std::size_t capacity_;
  const scheduler::Time start_ = Clock::now();
  mutable std::mutex mutex_;  // guards everything below
  std::vector<TraceEvent> ring_;
  std::size_t next_ = 0;  // where the next one goes once the ring is full
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::map<std::uint64_t, TraceSnapshot::Session> alive_;
};

/// The trace-event JSON of a snapshot on `machine`.
std::string chrome_json(const TraceSnapshot& snapshot, const scheduler::Machine& machine);

}  // namespace slate::daemon
