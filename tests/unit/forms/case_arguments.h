// Arguments for test kernels: contents that depend on nothing but their size, and the shapes that
// kernels take them in.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/forms/form_runner.h"

namespace slate::test {

/// Random words; less than `below` unless that is 0.
inline std::vector<std::uint32_t> words(std::size_t count, std::uint32_t below = 0) {
  std::mt19937_64 random(count);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) {
    value = static_cast<std::uint32_t>(random());
    if (below != 0) value %= below;
  }
  return values;
}

inline std::vector<float> floats(std::size_t count, float low, float high) {
  std::mt19937_64 random(count + 1);
  std::vector<float> values(count);
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(random() >> 40) * 0x1p-24f;
  }
  return values;
}

inline Argument in(std::size_t count, float low = -1, float high = 1) {
  return Argument::buffer(floats(count, low, high));
}
inline Argument out(std::size_t count) {
  return Argument::buffer(std::vector<float>(count, -1.0f));
}
inline Argument zeros(std::size_t count) {
  return Argument::buffer(std::vector<std::uint32_t>(count, 0));
}
template <typename T>
Argument value(T v) {
  return Argument::value(v);
}

}  // namespace slate::test
