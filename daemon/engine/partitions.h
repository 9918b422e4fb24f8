// Partitions: the device's partitions by unit ranges. Every division in two is made at the start,
// since on a GPU making one waits for all work and holds up all others; the rest when first asked
// for, by a thread of their own, as a launch cannot wait for that. They stay for the engine's life.
// Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "scheduler/placement.h"
#include "scheduler/settings.h"

namespace slate::daemon {

class Partitions {
 public:
  /// Each takes some device memory (5.5 MiB on an H200); beyond this many none is made.
  static constexpr std::size_t kMost = 64;

  /// Asks the device for its units and divides it, which may take 150 ms. `device` outlives it;
  /// `settings` may replace its peaks.
  Partitions(device::Device& device, const scheduler::Settings& settings);
  /// Requires: no stream of a partition is left.
  ~Partitions();
  /// From now on none is made. Returns when none is being made any more.
  void stop();

  /// With one unit if the device cannot be partitioned.
  const scheduler::Machine& machine() const { return machine_; }
  /// The partition of these units; the whole device for all of them. nullopt: not there yet, but
  /// asked for now, or never to be had.
  std::optional<device::Partition> find(const scheduler::Placement& placement);
  /// What a running worker-form launch obeys: on the placement's SMs as many workers as it says, or
  /// as fit, and none elsewhere.
  WorkerTable table(const scheduler::Placement& placement) const;

 private:
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // first unit, number of units

  void make_pairs();
  void make(Range range);
  void request(Range range);  // under the mutex
  void run();

  device::Device& device_;
  std::vector<std::vector<std::uint32_t>> units_;  // SM numbers
  scheduler::Machine machine_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  std::map<Range, std::optional<device::Partition>> made_;  // nullopt: being made, or refused
  std::deque<Range> queue_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace slate::daemon
