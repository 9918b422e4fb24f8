// Gpu: the SMs and the host threads behind them. It decides which block is resident on which SM and
// whose turn it is; what an instruction does is Block's business, which launch may start when is
// that of streams.h.
//
// Blocks go out by the leftover policy: those of the launch with the smallest priority value, then
// of the earliest one, in rising order, breadth first over the SMs of its partition; the next
// launch gets what is left there when all blocks of that one are out, and at once the SMs that are
// not in that one's partition. A cooperative launch waits until it has room for all of its blocks;
// others behind it wait too, so that they cannot hold it up for ever. A host thread owns some SMs
// and lets their blocks run in turn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

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

/// One launch from start() to its end. The public part is filled in before start() and constant
/// afterwards.
class KernelRun {
 public:
  KernelLaunch launch;
  BlockCost cost;  // occupancy > 0
  int priority = 0;
  SmSet sms;                 // where its blocks may go; not empty
  bool cooperative = false;  // all of its blocks go out at once, or none
  /// Called once, from a host thread of the Gpu that holds no lock.
  std::function<void(const KernelOutcome&)> done;

 private:
  friend class Gpu;
  std::uint64_t total_ = 0;
  std::uint64_t next_ = 0;                  // linear index of the first block that is not out yet
  std::uint64_t resident_ = 0;              // blocks on SMs
  std::vector<std::uint16_t> resident_on_;  // per SM
  std::int64_t started_ns_ = 0;
  bool started_ = false;
  bool over_ = false;  // its end is being reported
  KernelOutcome outcome_;
};

/// Thread-safe. done() and jobs may call back into it.
class Gpu {
 public:
  explicit Gpu(const Settings& settings);
  /// Requires: every launch and job has ended.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void start(std::shared_ptr<KernelRun> run);
  /// Makes a started launch end soon; done() reports it as cancelled unless it ended before.
  void cancel(KernelRun& run);
  /// How many of its SMs are in the set.
  std::uint64_t count_sms(const SmSet& sms) const;
  /// Runs `job` (a copy) on a host thread, between blocks.
  void post(std::function<void()> job);

 private:
  struct Sm;
  struct Resident;
  struct Worker;
  using Lock = std::unique_lock<std::mutex>;

  void work(Worker& worker);
  void run_job(Lock& lock);
  Resident* next_resident(Worker& worker);
  Resident* random_resident(Worker& worker);
  void step(Worker& worker, Resident& resident, Lock& lock);
  /// One turn, without the lock; why the block faulted, if it did.
  static Result<Block::State> run_block(Schedule& schedule, Resident& resident);
  void retire(Resident& resident, Lock& lock);
  void finish_if_over(KernelRun& run, Lock& lock);
  void dispatch();
  Sm* choose_sm(const KernelRun& run, const SmSet& taken);
  bool fits_at_once(const KernelRun& run, const SmSet& taken) const;
  void place(const std::shared_ptr<KernelRun>& run, Sm& sm);
  void stop(KernelRun& run);
  void check_time(KernelRun& run);
  void wake(Worker& worker);
  void post_locked(std::function<void()> job);

  const Settings settings_;
  std::mutex mutex_;
  std::mt19937_64
      placement_;  // random choice of SMs; apart from the workers', which run without the lock
  std::vector<std::unique_ptr<Sm>> sms_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::deque<std::shared_ptr<KernelRun>>
      waiting_;  // have blocks that are not out; by priority, then age
  std::deque<std::function<void()>> jobs_;
  std::uint64_t unfinished_ = 0;  // launches and jobs
  bool stopping_ = false;
};

}  // namespace slate::sim
