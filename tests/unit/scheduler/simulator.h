// Simulator: programs, an executor and a GPU on a virtual clock, around one policy. Programs keep
// launches queued, wait for each, or come at random; the executor honours Start, alone and Resize;
// the GPU is gpu_model.h. Every rule that a decision must keep is checked as it is carried out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/settings.h"
#include "tests/unit/scheduler/gpu_model.h"

namespace slate::scheduler::test {

struct Program {
  std::vector<const ModelKernel*> kernels;  // in turn
  std::uint32_t depth = 32;                 // launches queued or running at a time
  double gap_ms = 0;       // between the end of a launch and the next one: a program that waits
  double arrivals_ms = 0;  // > 0: a launch comes at random, so far apart in the mean
  std::uint64_t launches = std::numeric_limits<std::uint64_t>::max();
  double begin_ms = 0, end_ms = std::numeric_limits<double>::infinity();  // when it launches
  double weight = 1;
  std::uint32_t user = 0;
  double user_weight = 1;
  int priority = 0;
  double scale = 1;  // of the kernels' times
};

struct Outcome {
  std::uint64_t launched = 0, started = 0, ended = 0;
  double work_ms = 0;  // ended, in the time that it takes alone in the quickest form
  double last_end_ms = 0;
  double longest_wait_ms = 0;  // from the head of the queue to Start
  double first_start_ms = -1;
  double device_ms = 0;
  double longest_device_ms = 0;
};

class Simulator {
 public:
  Simulator(Policy& policy, ProfileTable& profiles, const Machine& machine,
            const Settings& settings, std::uint64_t seed = 1);

  /// Numbered from 0 in the order of adding.
  std::size_t add(const Program& program);
  void run_until(double ms);
  /// Ends the program's session: what waits is dropped, what runs ends.
  void end_session(std::size_t program);
  /// Until nothing waits and nothing runs, at most until `ms`.
  void drain(double ms);

  double now_ms() const { return now_; }
  const Outcome& outcome(std::size_t program) const { return sessions_[program].outcome; }
  /// Blocks done of the running launch, 0 to 1.
  double progress(std::size_t program) const;
  Placement placement(std::size_t program) const;
  std::uint64_t decisions() const { return decisions_; }
  std::uint64_t resizes() const { return resizes_; }
  KernelId kernel_id(const ModelKernel& kernel, double scale = 1);

  /// Called for each Start, with the program's number.
  std::function<void(std::size_t, const Start&)> on_start;
  std::function<void(std::size_t, const Completion&)> on_end;
  /// Relative, of each launch's time.
  double jitter = 0;
  /// Of the device's usual speed: a card that gets too hot, or draws too much, slows down.
  double clock = 1;
  /// Completions of one kernel are noticed so many at a time, or when the session's last one ends.
  std::uint32_t merge = 1;
  /// From a start to when the session's next launch waits.
  double next_after_ms = 0;
  /// Between progress reports.
  double progress_every_ms = 0.5;

 private:
  struct Launch {
    std::uint64_t serial = 0;
    std::uint64_t waited_until = 0;  // launches up to this one wait for it no longer
    const ModelKernel* kernel = nullptr;
    KernelId id = 0;
    Form form = Form::kNative;
    Placement placement;
    bool alone = false, begun = false, resized = false;
    std::uint64_t tag = 0;
    double done = 0, work = 1;  // 0 to 1; native ms
    double part = 1;            // of the grid: less for slices
    bool last = true;           // of its launch's slices
    double queued_at = 0, started_at = 0, began_at = 0, rate = 0, stalled_until = 0;
  };
  struct Session {
    SessionId id = 0;
    Program program;
    std::vector<KernelId> ids;  // of the program's kernels
    Outcome outcome;
    std::deque<double> pending;  // arrival times
    std::uint64_t sliced = 0;    // blocks of the first of them that were started in slices
    std::deque<Launch> started;
    std::optional<Completion> held;  // ended, not noticed yet
    double next_arrival = 0;
    double idle_since = 0;
    double last_end = 0;  // of its launches
    double next_at = 0;   // its queue's head is seen from then on
    bool ended = false;
  };

  Time at(double ms) const;
  void arrive(Session& session);
  void arrivals();
  bool head_waits(const Session& session) const;
  bool heads_come() const;
  void decide();
  bool decide_once();
  void build_view();
  void carry_out(const Start& start);
  void carry_out(const Resize& resize);
  void begin_launches();
  bool may_begin(const Session& session, const Launch& launch) const;
  void set_rates();
  void advance(double to);
  void endings();
  void notice(Session& session, const Completion& completion);
  void deliver(Session& session, const Completion& completion);
  void report_progress();
  double next_event() const;
  const ModelKernel& next_kernel(const Session& session) const;
  KernelId next_id(const Session& session) const;
  Session* find(SessionId id);

  Policy& policy_;
  ProfileTable& profiles_;
  const Machine machine_;
  const Settings settings_;
  std::mt19937_64 random_;
  std::deque<Session> sessions_;
  std::vector<SessionView> views_;
  std::vector<Occupant> occupants_;
  std::vector<double> rates_;
  std::vector<Launch*> on_device_;
  Decisions decided_;
  double now_ = 0, again_ = 0, next_report_ = 0, decided_at_ = -1;
  std::uint64_t serial_ = 0, decisions_ = 0, resizes_ = 0;
  bool changed_ = true;
};

}  // namespace slate::scheduler::test
