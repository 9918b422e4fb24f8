// Partitions: the device's partitions by unit ranges. They stay for the engine's life. On a GPU
// making one waits for all work and holds up all other work. So the divisions in two are made at
// the start. A thread makes others when they are first asked for, as a launch cannot wait for them.
// Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "scheduler/placement.h"
#include "scheduler/settings.h"

namespace slate::daemon {

class Partitions {
 public:
  /// The most partitions. Each takes device memory (5.5 MiB on an H200).
  static constexpr std::size_t kMost = 64;

  /// Asks the device for its units and divides it, which may take 150 ms. `device` outlives it.
  /// `settings` may replace the device's peaks.
  Partitions(device::Device& device, const scheduler::Settings& settings);
  /// Requires: no stream of a partition is left.
  ~Partitions();
  /// Makes no more partitions; waits for one under way.
  void stop();

  /// The machine; it has one unit if the device cannot be partitioned.
  const scheduler::Machine& machine() const { return machine_; }
  /// The partition of these units; the whole device for all units. nullopt: not made yet, but
  /// requested by this call, or never possible.
  std::optional<device::Partition> find(const scheduler::Placement& placement);
  /// The table for workers of this placement: on its SMs as many workers as it says, or as fit;
  /// none elsewhere.
  WorkerTable table(const scheduler::Placement& placement) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first unit, number of units

  /// The constructor only, before the thread begins.
  void make_pairs() SLATE_NO_THREAD_SAFETY_ANALYSIS;
  void make(Range range);
  void request(Range range) SLATE_REQUIRES(mutex_);
  void run();

  device::Device& device_;
  std::vector<std::vector<std::uint32_t>> units_;  // SM numbers
  scheduler::Machine machine_;
  Mutex mutex_;
  CondVar wanted_;
  // `nullopt`: being made, or refused.
  std::map<Range, std::optional<device::Partition>> made_ SLATE_GUARDED_BY(mutex_);
  std::deque<Range> queue_ SLATE_GUARDED_BY(mutex_);
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace slate::daemon
