#include "device/sim/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <thread>

#include "device/sim/memory.h"

namespace slate::sim {
namespace {

using Apply = Result<void> (*)(Settings& settings, std::string_view value);

std::unexpected<Error> expected(std::string_view what) {
  return fail(ErrorCode::kInvalidValue, fmt::format("expected {}", what));
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

template <typename T>
Result<void> set_integer(T& target, std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  if (!parse_whole(text, value) || value < low || value > high) {
    return expected(fmt::format("an integer from {} to {}", low, high));
  }
  target = static_cast<T>(value);
  return {};
}

Result<void> set_sms(Settings& settings, std::string_view text) {
  return set_integer(settings.sms, text, 1, kMostSms);
}

Result<void> set_unit(Settings& settings, std::string_view text) {
  return set_integer(settings.unit, text, 1, kMostSms);
}

Result<void> set_threads(Settings& settings, std::string_view text) {
  return set_integer(settings.threads, text, 1, 256);
}

Result<void> set_quantum(Settings& settings, std::string_view text) {
  return set_integer(settings.quantum, text, 1, 1'000'000);
}

Result<void> set_strict(Settings& settings, std::string_view text) {
  return set_integer(settings.strict, text, 0, 1);
}

Result<void> set_seed(Settings& settings, std::string_view text) {
  return set_integer(settings.seed.emplace(), text, 0, UINT64_MAX);
}

Result<void> set_memory(Settings& settings, std::string_view text) {
  constexpr std::uint64_t kMost = 1ull << 40;
  constexpr std::string_view kWhat =
      "a multiple of 2M from 2M to 1T, in bytes or with K, M, G or T after it";
  static constexpr std::string_view kSuffixes = "KMGT";
  int shift = 0;
  if (!text.empty()) {
    if (const auto found = kSuffixes.find(text.back()); found != std::string_view::npos) {
      shift = 10 * (static_cast<int>(found) + 1);
      text.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  if (!parse_whole(text, value) || value > (kMost >> shift)) return expected(kWhat);
  value <<= shift;
  if (value == 0 || value % kChunkBytes != 0) return expected(kWhat);
  settings.memory = value;
  return {};
}

Result<void> set_cc(Settings& settings, std::string_view text) {
  const std::size_t dot = text.find('.');
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  if (dot == std::string_view::npos || !parse_whole(text.substr(0, dot), major) ||
      !parse_whole(text.substr(dot + 1), minor) || major < 5 || major > 99 || minor > 9) {
    return expected("a compute capability such as 9.0, from 5.0 to 99.9");
  }
  settings.cc_major = major;
  settings.cc_minor = minor;
  return {};
}

Result<void> set_max_kernel_seconds(Settings& settings, std::string_view text) {
  double value = 0;
  if (!parse_whole(text, value) || !(value >= 0 && value <= 1e6)) {
    return expected("seconds from 0 to 1000000");
  }
  settings.max_kernel_seconds = value;
  return {};
}

Result<void> set_fault(Settings& settings, std::string_view text) {
  if (text != "stream" && text != "device") return expected("stream or device");
  settings.fault_ends_all = text == "device";
  return {};
}

Result<void> set_leftovers(Settings& settings, std::string_view text) {
  std::uint32_t value = 0;
  if (const auto set = set_integer(value, text, 0, 255); !set) return set;
  settings.leftovers = static_cast<std::uint8_t>(value);
  return {};
}

struct Key {
  std::string_view name;
  Apply apply;
};

constexpr std::array<Key, 11> kKeys{{
    {"sms", set_sms},
    {"unit", set_unit},
    {"memory", set_memory},
    {"threads", set_threads},
    {"seed", set_seed},
    {"cc", set_cc},
    {"max_kernel_seconds", set_max_kernel_seconds},
    {"quantum", set_quantum},
    {"strict", set_strict},
    {"fault", set_fault},
    {"leftovers", set_leftovers},
}};

Result<void> apply_pair(Settings& settings, std::string_view pair) {
  const std::size_t equals = pair.find('=');
  const std::string_view name = pair.substr(0, equals);
  const auto key = std::find_if(kKeys.begin(), kKeys.end(),
                                [name](const Key& each) { return each.name == name; });
  if (key == kKeys.end()) {
    std::string names;
    for (const Key& each : kKeys)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    return fail(ErrorCode::kInvalidValue,
                fmt::format("sim has no setting '{}'; it has {}", name, names));
  }
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::kInvalidValue, fmt::format("sim setting '{}' needs a value", name));
  }
  Result<void> done = key->apply(settings, pair.substr(equals + 1));
  if (!done) done.error().message = fmt::format("sim setting '{}': {}", pair, done.error().message);
  return done;
}

}  // namespace

Result<Settings> parse_settings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    Result<void> done = apply_pair(settings, text.substr(0, comma));
    if (!done) return std::unexpected(std::move(done.error()));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return settings;
}

std::uint32_t host_threads(const Settings& settings) {
  if (settings.seed) return 1;
  const std::uint32_t wanted =
      settings.threads != 0 ? settings.threads : std::thread::hardware_concurrency();
  return std::clamp(wanted, 1u, settings.sms);
}

}  // namespace slate::sim
