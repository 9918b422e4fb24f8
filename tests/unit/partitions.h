// Short ways to partitions and their streams: for the tests of both devices.
#pragma once

#include <gtest/gtest.h>

#include "device/device.h"

namespace slate::test {

/// The whole device, and a failure of the test, where the device has no such units.
inline device::Partition make_partition(device::Device& device, std::uint32_t first_unit,
                                        std::uint32_t unit_count) {
  const auto made = device.create_partition(first_unit, unit_count);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(device::kWholeDevice);
}

inline device::Stream make_stream(device::Device& device, device::Partition partition,
                                  int priority = 0) {
  const auto made = device.create_stream(priority, partition);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(device::Stream{});
}

}  // namespace slate::test
