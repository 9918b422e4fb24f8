// Policy: who runs where. The one interface between the scheduler's decisions and the executor that
// carries them out. Values in (who waits, who runs, what is known of their kernels), decisions out
// (start this launch in that form over there, resize that one, come back at that time). No CUDA, no
// I/O, no threads, no clock of its own: all time is the caller's, so that tests run on a virtual
// one.
//
// The executor calls decide() when a launch arrives, when work finishes, when a session comes or
// goes, at the time that the last decision asked for, and again at once after a decision that
// started something, with the next launches at the heads of the queues, until nothing is started;
// never two calls at once.
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

/// The head of a session's queue: a launch that has not been started.
struct WaitingLaunch {
  KernelId kernel = 0;               // row of the profile table
  std::uint64_t blocks = 0;          // of its grid
  std::uint64_t blocks_started = 0;  // in slices; the rest can only follow in slices
  std::uint64_t wave = 0;     // blocks that the whole device holds at once, native form; 0: unknown
  bool worker_legal = false;  // for this launch, not only for the kernel
  bool slice_legal = false;
  bool worker_likely =
      false;  // legal, and sure to be quicker: start so before anything is measured
  std::optional<Form> only{};  // the administrator's: it runs so, whatever is decided
  Time since{};
};

/// Work of a session that was started and has not ended.
struct RunningWork {
  std::uint32_t launches = 0;  // 0: nothing runs
  Milliseconds expected{};     // of device time alone, all of it, by the profile
  KernelId kernel = 0;         // of the newest launch
  Form form = Form::kNative;
  Placement placement;            // as last started or resized
  std::uint64_t tag = 0;          // of the decision that started the newest
  bool resizable = false;         // a worker-form launch whose placement can still be changed
  std::uint64_t blocks = 0;       // of that one
  std::uint64_t blocks_done = 0;  // as last seen
  Time started{};                 // of the newest launch
};

struct SessionView {
  SessionId id = 0;
  double weight = 1.0;  // > 0; shares of the device are as the weights
  int priority = 0;     // higher goes first; among equals the policy decides
  std::optional<WaitingLaunch> waiting;
  RunningWork running;
  Time idle_since{};  // neither waiting nor running since then
};

struct View {
  Time now{};
  const Machine& machine;
  std::span<const SessionView> sessions;  // in the order in which they came
};

/// Start the waiting launch of `session`.
struct Start {
  SessionId session = 0;
  Form form = Form::kNative;
  Placement placement;
  std::uint64_t slice_blocks = 0;  // kSlice: start so many of the blocks left; 0: all of them
  std::uint32_t task_size = 0;     // kWorker: blocks a task; 0: the usual number
  bool prefetch = true;            // kWorker: it has its next task before it is through with one
  /// On the device, only after all work of other sessions that was started before. Work whose
  /// placement is empty does not count: it is waited for only until its workers have left.
  bool alone = false;
  /// The same is wished of the launches of this kernel that follow, which need not be asked about
  /// for a while: about as long as one batch of them is measured. They are in RunningWork by the
  /// next decide() for this session.
  bool repeats = false;
  /// Its time need not be measured if it is known well: a sample of such launches is enough.
  bool sampled = false;
  /// In a form that looks slower than another, to see whether it is: its time is wanted.
  bool tried = false;
  std::uint64_t tag = 0;  // comes back in Completion
};

/// Change the placement of running, resizable work; an empty placement takes it off the device
/// until the next one.
struct Resize {
  SessionId session = 0;
  Placement placement;
};

struct Decisions {
  std::vector<Start> start;    // at most one a session
  std::vector<Resize> resize;  // carried out before the starts
  Time again = kNever;         // call decide() at this time at the latest
  std::string_view reason;     // for the trace; static text
  double score = 0;            // what was measured to decide so, as makespan(); 0: nothing

  void clear() {
    start.clear();
    resize.clear();
    again = kNever;
    reason = {};
    score = 0;
  }
};

/// Launches of one session, and of one kernel unless they are mixed, that ran one behind the other
/// and have ended.
struct Completion {
  SessionId session = 0;
  KernelId kernel = 0;  // the first one's
  KernelId main = 0;    // on which most of the time goes
  Form form = Form::kNative;
  Placement placement;
  std::uint64_t tag = 0;  // of the oldest launch among them
  std::uint32_t launches = 1;
  std::uint64_t blocks = 0;  // of one launch
  double part = 1;           // of its grid that each of them covered: less for slices
  std::uint32_t task_size = 0;
  Milliseconds device_time{};  // of one launch, by the device's clock; 0 if not timed
  Milliseconds alone{};        // of one launch by itself, as known when it was started; the mean
  Time started{}, ended{};     // by the caller's clock
  bool resized = false;        // its placement changed while it ran: device_time says little
  bool timed = true;           // only a sample of launches that repeat is
  bool mixed = false;          // other kernels are among the launches

  /// device_time is this kernel's.
  bool measured() const { return timed && !mixed; }
  /// What the launches are worth: their time by themselves, of which `known` is the kernel's.
  Milliseconds work(std::optional<Milliseconds> known) const {
    if (!measured()) return alone * launches;
    return (known ? *known * part : device_time) * launches;
  }
};

/// How far running resizable work has come, seen now and then.
struct Progress {
  SessionId session = 0;
  KernelId kernel = 0;
  Placement placement;
  std::uint64_t tag = 0;
  std::uint64_t blocks_done = 0;  // since its launch began
  std::uint64_t blocks = 0;
  Time at{};
};

class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;
  /// Fills `decisions`, which comes cleared. A launch that no decision starts keeps waiting; when
  /// nothing runs and somebody waits, somebody must be started or `again` be set.
  virtual void decide(const View& view, Decisions& decisions) = 0;
  /// What has ended. Always before the decide() that it leads to.
  virtual void finished(const Completion& completion) = 0;
  /// For resizable work on the device, about every half millisecond while a policy is to learn from
  /// kernels that do not end.
  virtual void progressed(const Progress&) {}
  virtual void session_ended(SessionId) {}
  /// In words, for people: how the sessions share the device now.
  virtual std::string arrangement_text(const Machine&) const { return {}; }
};

}  // namespace slate::scheduler
