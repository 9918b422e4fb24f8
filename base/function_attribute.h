// FunctionAttribute: what a program can set of a kernel, for all its later launches. The numbers
// are the driver's (CUfunction_attribute).
#pragma once

#include <cstdint>

namespace slate {

enum class FunctionAttribute : std::uint32_t {
  kMaxDynamicShared = 8,      // bytes that a launch may ask for
  kCarveout = 9,              // percent of an SM's memory that is shared memory; -1: no wish
  kClusterWidth = 11,         // blocks of every cluster; either all three are 0, or none
  kClusterHeight = 12,        // likewise
  kClusterDepth = 13,         // likewise
  kNonPortableClusters = 14,  // whether clusters may have more than 8 blocks
  kClusterScheduling = 15,    // CUclusterSchedulingPolicy, a wish
};

}  // namespace slate
