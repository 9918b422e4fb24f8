// Partitions: sets of SMs, made of units of Settings::unit neighbours. They only say which SMs the
// kernels of a stream may use; gpu.h obeys them. Thread: any.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "device/sim/settings.h"

namespace slate::sim {

/// Numbers of SMs; may hold numbers that no SM has.
using SmSet = std::bitset<kMostSms>;

/// Implements the methods of device::Device about partitions, whose contracts hold here.
class Partitions {
 public:
  explicit Partitions(const Settings& settings);

  const std::vector<std::vector<std::uint32_t>>& units() const { return units_; }
  Result<device::Partition> create(std::uint32_t first_unit, std::uint32_t unit_count);
  void destroy(device::Partition partition);

  /// The SMs of a partition; all for kWholeDevice. Errors: kInvalidHandle for one that does not
  /// exist.
  Result<SmSet> sms(device::Partition partition) const;

 private:
  std::vector<std::vector<std::uint32_t>> units_;
  mutable Mutex mutex_;
  std::uint64_t next_handle_ SLATE_GUARDED_BY(mutex_) = 1;
  std::map<device::Partition, SmSet> partitions_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::sim
