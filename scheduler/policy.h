// Policy: decides which launch runs where, and in which form. It is the one interface between the
// scheduler's decisions and the executor that carries them out. Values go in (waiting launches,
// running work, profiles); decisions come out (starts, resizes, the time of the next call). No
// CUDA, no I/O, no threads and no clock: all time is the caller's, so that tests run on a virtual
// one.
//
// Thread: the executor never makes two calls at once. It calls decide():
// - when a launch arrives, work ends, or a session comes or goes;
// - at the time that the last decision asked for (Decisions::again);
// - at once after a decision that started something, with the next launches of the queues, until
//   nothing is started.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/profile.h"

namespace slate::scheduler {

using SessionId = std::uint64_t;

/// The head of a session's queue: a launch that has not been started, or not all of it.
struct WaitingLaunch {
  KernelId kernel = 0;               // row in the profile table
  std::uint64_t blocks = 0;          // blocks of its grid
  std::uint64_t blocks_started = 0;  // blocks started in slices; the rest can only follow in slices
  std::uint64_t wave = 0;       // native blocks that the whole device holds at once; 0: unknown
  bool worker_legal = false;    // whether this launch, not only its kernel, may run as workers
  bool slice_legal = false;     // whether this launch may run in slices
  bool stream_is_free = false;  // whether all earlier work of its stream has ended
  /// Whether the worker form is legal, and sure to be quicker: it is then the first form, before
  /// anything is measured.
  bool worker_likely = false;
  std::optional<Form> only{};  // form set by the administrator, whatever is decided
  Time since{};                // time of arrival
};

/// Work of one session that was started and has not ended.
struct RunningWork {
  std::uint32_t launches = 0;  // launches that have not ended; 0: nothing runs
  Milliseconds expected{};     // device time of all the launches when alone, by the profile
  double filled = 0;           // sum of filled_by() of launches that were begun by a decision
  KernelId kernel = 0;         // kernel of the newest launch
  Form form = Form::kNative;   // form of the newest launch
  Placement placement;         // placement as last started or resized
  std::uint64_t tag = 0;       // tag of the decision that started the newest launch
  bool resizable = false;      // whether a launch is a worker form whose placement can still change
  /// Whether launches are among them whose placement cannot change: nobody can take them off.
  bool fixed = false;
  Time fixed_since{};        // since when the oldest of those is the oldest of those
  double fixed_filled = 0;   // sum of filled_by() of those
  bool uncertain = false;    // whether the time of one of those is not known
  std::uint64_t blocks = 0;  // blocks of the resizable launch's grid
  /// Blocks of the resizable launch that were handed out, as last seen.
  std::uint64_t blocks_done = 0;
  Time started{};  // start of the newest launch
};

/// One session as the policy sees it.
struct SessionView {
  SessionId id = 0;
  std::uint32_t user = 0;
  double user_weight = 1.0;  // share of the user relative to other users'; > 0
  double weight = 1.0;       // share relative to the other sessions of its user; > 0
  int priority = 0;          // higher goes first; among equals the policy decides
  std::optional<WaitingLaunch> waiting;
  RunningWork running;
  Time idle_since{};  // time since which nothing waits or runs
};

struct View {
  Time now{};
  const Machine& machine;
  std::span<const SessionView> sessions;  // in the order of arrival
};

/// A decision: start the waiting launch of `session`.
struct Start {
  SessionId session = 0;
  Form form = Form::kNative;
  Placement placement;
  std::uint64_t slice_blocks = 0;  // kSlice: blocks to start of those left; 0: all of them
  std::uint32_t task_size = 0;     // kWorker: blocks of a task; 0: the usual number
  bool prefetch = true;  // kWorker: a worker fetches its next task before it has finished one
  /// Whether the launch waits on the device for all work of other sessions that was started before.
  /// Work with an empty placement is waited for only until its workers have left.
  bool alone = false;
  /// Whether the following launches of this kernel may start likewise, without a decision, for
  /// about as long as one batch of them is measured. They are in RunningWork by the next decide()
  /// for this session.
  bool repeats = false;
  /// Whether a sample of such launches is timed enough, if the kernel's time is known well.
  bool sampled = false;
  /// Whether the form looks slower than another one and is measured to find out: its time is
  /// wanted.
  bool tried = false;
  std::uint64_t tag = 0;  // value that comes back in Completion and Progress
};

/// A decision: change the placement of running, resizable work. An empty placement takes it off the
/// device until the next resize.
struct Resize {
  SessionId session = 0;
  Placement placement;
};

struct Decisions {
  std::vector<Start> start;    // at most one for each session
  std::vector<Resize> resize;  // carried out before the starts
  Time again = kNever;         // time of the next decide() at the latest
  std::string_view reason;     // for the trace; static text
  double score = 0;            // makespan() that was measured for this decision; 0: none

  void clear() {
    start.clear();
    resize.clear();
    again = kNever;
    reason = {};
    score = 0;
  }
};

/// Launches of one session that ran one behind the other and have ended. They are of one kernel
/// unless `mixed`.
struct Completion {
  SessionId session = 0;
  KernelId kernel = 0;  // kernel of the first launch
  KernelId main = 0;    // kernel on which most of the time went
  Form form = Form::kNative;
  Placement placement;
  std::uint64_t tag = 0;  // tag of the oldest launch
  std::uint32_t launches = 1;
  std::uint64_t blocks = 0;     // blocks of one launch's grid
  double part = 1;              // part of the grid that each launch covered: below 1 for slices
  std::uint32_t task_size = 0;  // kWorker: blocks of a task; 0: the usual number
  Milliseconds device_time{};   // of one launch, by the device's clock; 0: not timed
  Milliseconds alone{};         // mean time of one launch alone, as known at its start
  Time started{}, ended{};      // by the caller's clock
  /// Whether the placement changed during the run, so that device_time says little.
  bool resized = false;
  bool timed = true;   // whether the launches were timed; of repeated ones a sample is
  bool mixed = false;  // whether launches of other kernels are among them

  /// Whether device_time is the time of one launch of `kernel`.
  bool measured() const { return timed && !mixed; }
  /// The work that was done: the time of all launches when alone. `known`: the kernel's time alone,
  /// if it is known.
  Milliseconds work(std::optional<Milliseconds> known) const {
    if (!measured()) return alone * launches;
    return (known ? *known * part : device_time) * launches;
  }
};

/// How far a running resizable launch has come.
struct Progress {
  SessionId session = 0;
  KernelId kernel = 0;
  Placement placement;
  std::uint64_t tag = 0;
  std::uint64_t blocks_done = 0;  // blocks handed out since the launch began
  std::uint64_t blocks = 0;       // blocks of its grid
  Time at{};                      // time of the observation, by the caller's clock
};

class Policy {
 public:
  virtual ~Policy() = default;

  /// The name in the configuration.
  virtual std::string_view name() const = 0;
  /// Fills `decisions`. Requires: `decisions` is cleared. A launch that is not started keeps
  /// waiting. When nothing runs and a launch waits, a launch must be started or `again` must be
  /// set.
  virtual void decide(const View& view, Decisions& decisions) = 0;
  /// Learns from launches that have ended. Called before the decide() that their end causes.
  virtual void finished(const Completion& completion) = 0;
  /// Learns from a resizable launch on the device: called about every millisecond while it runs.
  virtual void progressed(const Progress&) {}
  /// The session has gone; it is in no later view.
  virtual void session_ended(SessionId) {}
  /// How the sessions share the device now, as text for people.
  virtual std::string arrangement_text(const Machine&) const { return {}; }
};

}  // namespace slate::scheduler
