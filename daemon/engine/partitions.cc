#include "daemon/engine/partitions.h"

#include <algorithm>

#include "base/log.h"

namespace slate::daemon {

Partitions::Partitions(device::Device& device, const scheduler::Settings& settings)
    : device_(device) {
  machine_.sm_count = static_cast<std::uint32_t>(sm_count(device.info()));
  machine_.sms_per_unit = machine_.sm_count;
  const auto or_its_own = [](double set, double own) { return set > 0 ? set : own; };
  machine_.peak_gflops = or_its_own(settings.peak_gflops, peak_gflops(device.info()));
  machine_.peak_gbytes = or_its_own(settings.peak_gbytes, peak_gbytes(device.info()));
  auto units = device.partition_units();
  if (!units) {
    log_debug("kernels share the device without partitions: {}", units.error().message);
    return;
  }
  units_ = std::move(*units);
  machine_.units = static_cast<std::uint32_t>(units_.size());
  machine_.sms_per_unit = static_cast<std::uint32_t>(units_.front().size());
  make_pairs();
  // Not with the first request: should there be no thread left then, that is no session's fault.
  thread_ = std::thread([this] { run(); });
}

Partitions::~Partitions() {
  stop();
  for (const auto& [range, partition] : made_) {
    if (partition) device_.destroy_partition(*partition);
  }
}

void Partitions::stop() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<device::Partition> Partitions::find(const scheduler::Placement& placement) {
  if (machine_.has_all_units(placement)) return device::kWholeDevice;
  const Range range{placement.first, placement.count};
  const MutexLock lock(mutex_);
  const auto found = made_.find(range);
  if (found != made_.end()) return found->second;
  request(range);
  return std::nullopt;
}

void Partitions::make_pairs() {
  for (std::uint32_t count = 1; count < machine_.units; ++count) {
    for (const Range& range : {Range{0, count}, Range{count, machine_.units - count}}) {
      if (made_.size() >= kMost || made_.contains(range)) continue;
      made_.emplace(range, std::nullopt);
      make(range);
    }
  }
}

void Partitions::make(Range range) {
  const auto made = device_.create_partition(range.first, range.second);
  if (!made) return log_warning("no partition of {} units: {}", range.second, made.error().message);
  const MutexLock lock(mutex_);
  made_[range] = *made;
}

void Partitions::request(Range range) {
  if (made_.size() >= kMost || ending_) return;
  made_.emplace(range, std::nullopt);
  queue_.push_back(range);
  wanted_.notify_one();
}

void Partitions::run() {
  MutexLock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this]() SLATE_REQUIRES(mutex_) { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const Range range = queue_.front();
    queue_.pop_front();
    lock.unlock();
    make(range);
    lock.lock();
  }
}

WorkerTable Partitions::table(const scheduler::Placement& placement) const {
  WorkerTable table(machine_.sm_count, 0);
  const std::uint32_t allowed =
      placement.blocks_per_sm != 0 ? placement.blocks_per_sm : injector::kMostWorkers;
  if (units_.empty()) {
    if (!placement.empty()) std::ranges::fill(table, allowed);
    return table;
  }
  const auto end = std::min<std::size_t>(placement.end(), units_.size());
  for (std::size_t unit = placement.first; unit < end; ++unit) {
    for (const std::uint32_t sm : units_[unit]) {
      if (sm < table.size()) table[sm] = allowed;
    }
  }
  return table;
}

}  // namespace slate::daemon
