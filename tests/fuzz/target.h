// A fuzz target: one function that feeds some bytes to code of slate which must survive any bytes.
// Each <target>_fuzz.cc defines it. fuzzer_main.cc drives it under libFuzzer, corpus_main.cc with
// the files of a folder. A finding is a crash, a sanitizer's report, or a broken SLATE_CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace slate::fuzz {

using Input = std::span<const std::byte>;

/// Feeds one input. Must leave nothing behind that changes how the next input goes.
void run(Input input);

inline std::string_view text_of(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// Takes a T off the front of the input; where the input is too short, the rest is zero.
template <typename T>
T take(Input& input) {
  T value{};
  const std::size_t bytes = input.size() < sizeof(T) ? input.size() : sizeof(T);
  if (bytes > 0) std::memcpy(&value, input.data(), bytes);
  input = input.subspan(bytes);
  return value;
}

/// Takes up to `bytes` off the front of the input.
inline Input take_bytes(Input& input, std::size_t bytes) {
  const Input taken = input.first(bytes < input.size() ? bytes : input.size());
  input = input.subspan(taken.size());
  return taken;
}

}  // namespace slate::fuzz
