// Gpu: the SMs and the host threads behind them. It decides which block is resident on which SM,
// and which block runs next. What an instruction does is Block's business; which launch may start
// when is that of streams.h.
//
// Blocks go out by the leftover policy:
// - first those of the launch with the smallest priority value, then those of the earliest launch,
//   in rising order, breadth first over the SMs of its partition;
// - the next launch gets the room left on those SMs when all blocks of that launch are out, and SMs
//   outside its partition at once;
// - a cooperative launch waits until it has room for all of its blocks; launches behind it wait
//   too, so that they cannot hold it up for ever.
//
// Thread: any, for public methods. Each host thread owns some SMs and runs their blocks in turn.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/sim/block.h"
#include "device/sim/occupancy.h"
#include "device/sim/partitions.h"
#include "device/sim/settings.h"

namespace slate::sim {

/// How a launch ended: with a fault, cancelled, or well (neither).
struct KernelOutcome {
  std::optional<Error> fault;
  bool cancelled = false;
  LaunchStatistics statistics;
};

/// One launch from start() to its end. The public members are filled in before start() and constant
/// afterwards.
class KernelRun {
 public:
  KernelLaunch launch;
  BlockCost cost;  // cost.occupancy > 0
  int priority = 0;
  SmSet sms;                 // SMs that its blocks may use; not empty
  bool cooperative = false;  // whether all of its blocks go out at once, or none
  /// Called once at the end, from a host thread of the Gpu that holds no lock.
  std::function<void(const KernelOutcome&)> done;

 private:
  friend class Gpu;
  std::uint64_t total_ = 0;
  std::uint64_t next_ = 0;                  // linear index of the first block that is not out yet
  std::uint64_t resident_ = 0;              // blocks on SMs
  std::vector<std::uint16_t> resident_on_;  // blocks on each SM
  std::int64_t started_ns_ = 0;
  bool started_ = false;
  bool over_ = false;  // whether its end is being reported
  KernelOutcome outcome_;
};

/// The simulated SMs. done() and jobs may call back into it.
class Gpu {
 public:
  explicit Gpu(const Settings& settings);
  /// Requires: every launch and job has ended.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Starts a launch. Returns at once; KernelRun::done reports the end.
  void start(std::shared_ptr<KernelRun> run);
  /// Ends a started launch soon. done() reports it as cancelled unless it ended before.
  void cancel(KernelRun& run);
  /// Number of SMs of the set that exist.
  std::uint64_t count_sms(const SmSet& sms) const;
  /// Runs a copy of `job` on a host thread, between blocks.
  void post(std::function<void()> job);

 private:
  struct Sm;
  struct Resident;
  struct Worker;
  using Lock = MutexLock;

  // Where a lock is passed, the function gives it back for a while, which the analysis cannot see.
  /// The loop of a host thread.
  void work(Worker& worker);
  void run_job(Lock& lock) SLATE_REQUIRES(mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;
  /// The block that the host thread runs next; null: none.
  Resident* next_resident(Worker& worker) SLATE_REQUIRES(mutex_);
  Resident* random_resident(Worker& worker) SLATE_REQUIRES(mutex_);
  void step(Worker& worker, Resident& resident, Lock& lock)
      SLATE_REQUIRES(mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;
  /// One turn of a block, without the lock. Errors: why the block faulted.
  static Result<Block::State> run_block(Schedule& schedule, Resident& resident);
  /// Removes a finished block from its SM.
  void retire(Resident& resident, Lock& lock)
      SLATE_REQUIRES(mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;
  void finish_if_over(KernelRun& run, Lock& lock)
      SLATE_REQUIRES(mutex_) SLATE_NO_THREAD_SAFETY_ANALYSIS;
  /// Places blocks of waiting launches on SMs with room.
  void dispatch() SLATE_REQUIRES(mutex_);
  Sm* choose_sm(const KernelRun& run, const SmSet& taken) SLATE_REQUIRES(mutex_);
  bool fits_at_once(const KernelRun& run, const SmSet& taken) const SLATE_REQUIRES(mutex_);
  void place(const std::shared_ptr<KernelRun>& run, Sm& sm) SLATE_REQUIRES(mutex_);
  /// Lets no more blocks of the launch out, and ends those that run.
  void stop(KernelRun& run) SLATE_REQUIRES(mutex_);
  /// Faults a launch that has run for longer than Settings::max_kernel_seconds.
  void check_time(KernelRun& run) SLATE_REQUIRES(mutex_);
  void wake(Worker& worker) SLATE_REQUIRES(mutex_);
  void post_locked(std::function<void()> job) SLATE_REQUIRES(mutex_);

  const Settings settings_;
  Mutex mutex_;
  /// Generator for the choice of SMs. Workers have generators of their own, as they run without the
  /// lock.
  std::mt19937_64 placement_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Sm>> sms_;
  std::vector<std::unique_ptr<Worker>> workers_;
  /// Launches with blocks that are not out, by priority, then age.
  std::deque<std::shared_ptr<KernelRun>> waiting_ SLATE_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> jobs_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t unfinished_ SLATE_GUARDED_BY(mutex_) = 0;  // launches and jobs that have not ended
  bool stopping_ SLATE_GUARDED_BY(mutex_) = false;
};

}  // namespace slate::sim
