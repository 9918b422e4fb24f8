#include "device/sim/partitions.h"

#include <fmt/format.h>

namespace slate::sim {

Partitions::Partitions(const Settings& settings) {
  for (std::uint32_t sm = 0; sm < settings.sms; ++sm) {
    if (sm % settings.unit == 0) units_.emplace_back();
    units_.back().push_back(sm);
  }
}

Result<device::Partition> Partitions::create(std::uint32_t first_unit, std::uint32_t unit_count) {
  if (unit_count == 0 || first_unit >= units_.size() || unit_count > units_.size() - first_unit) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("a partition of {} units from unit {} on: there are {} units",
                            unit_count, first_unit, units_.size()));
  }
  SmSet sms;
  for (std::uint32_t unit = first_unit; unit < first_unit + unit_count; ++unit) {
    for (const std::uint32_t sm : units_[unit]) sms.set(sm);
  }
  MutexLock lock(mutex_);
  const device::Partition partition{next_handle_++};
  partitions_.emplace(partition, sms);
  return partition;
}

void Partitions::destroy(device::Partition partition) {
  MutexLock lock(mutex_);
  partitions_.erase(partition);
}

Result<SmSet> Partitions::sms(device::Partition partition) const {
  if (partition == device::kWholeDevice) return ~SmSet();
  MutexLock lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such partition");
  return found->second;
}

}  // namespace slate::sim
