// median(): of what a benchmark measured.
#pragma once

#include <algorithm>
#include <vector>

namespace slate::bench {

/// The upper one of the two in the middle. Requires: not empty.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace slate::bench
