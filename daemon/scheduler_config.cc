#include "daemon/scheduler_config.h"

#include <array>
#include <iterator>
#include <variant>

#include "daemon/config_keys.h"

namespace slate::daemon {
namespace {

using scheduler::CorunTable;
using scheduler::kClassCount;
using scheduler::Milliseconds;
using scheduler::Settings;

using Member = std::variant<Milliseconds Settings::*, std::uint32_t Settings::*, double Settings::*,
                            bool Settings::*>;

struct Knob {
  std::string_view name;
  Member member;
  double least, most;
};

constexpr double kHourMs = 3'600'000;
constexpr double kMany = 1'000'000;

const Knob kKnobs[] = {
    {"ahead_ms", &Settings::ahead, 0, kHourMs},
    {"ahead_launches", &Settings::ahead_launches, 1, kMany},
    {"ahead_alone_ms", &Settings::ahead_alone, 0, kHourMs},
    {"ahead_alone_launches", &Settings::ahead_alone_launches, 1, kMany},
    {"unknown_kernel_ms", &Settings::unknown_kernel, 0, kHourMs},
    {"linger_ms", &Settings::linger, 0, kHourMs},
    {"priority_hold_ms", &Settings::priority_hold, 0, kHourMs},
    {"ageing_ms", &Settings::ageing, 0, kHourMs},
    {"long_kernel_ms", &Settings::long_kernel, 0, kHourMs},
    {"worker_floor", &Settings::worker_floor, 0, 1},
    {"unknown_worker_waves", &Settings::unknown_worker_waves, 1, kMany},
    {"native_first", &Settings::native_first, 0, kMany},
    {"form_tries", &Settings::form_tries, 1, kMany},
    {"task_tries", &Settings::task_tries, 1, kMany},
    {"slice_ms", &Settings::slice, 0.01, kHourMs},
    {"slice_waves", &Settings::slice_waves, 1, kMany},
    {"native_try_ms", &Settings::native_try, 0, kHourMs},
    {"quantum_ms", &Settings::quantum, 0.01, kHourMs},
    {"adaptive_quantum_ms", &Settings::adaptive_quantum, 0.01, kHourMs},
    {"long_quantum_ms", &Settings::long_quantum, 0.01, kHourMs},
    {"group", &Settings::group, 1, 8},
    {"rotation_ms", &Settings::rotation, 0.01, kHourMs},
    {"floor", &Settings::floor, 0, 1},
    {"least_gain", &Settings::least_gain, 0, 1},
    {"cut", &Settings::cut, 1, 100},
    {"drift", &Settings::drift, 0, 100},
    {"search_loss", &Settings::search_loss, 0.0001, 1},
    {"measure_ms", &Settings::measure, 0.01, kHourMs},
    {"measure_alone_ms", &Settings::measure_alone, 0, kHourMs},
    {"search_ahead_ms", &Settings::search_ahead, 0, kHourMs},
    {"search_again_ms", &Settings::search_again, 0, kHourMs},
    {"intensities", &Settings::intensities, 0, 1},
    {"forms_at_once", &Settings::forms_at_once, 0, 1},
    {"peak_gflops", &Settings::peak_gflops, 0, 1e9},
    {"peak_gbytes", &Settings::peak_gbytes, 0, 1e9},
};

const Knob kTableKnobs[] = {
    {"medium_compute", &Settings::medium_compute, 0, 1},
    {"high_compute", &Settings::high_compute, 0, 1},
    {"medium_memory", &Settings::medium_memory, 0, 1},
    {"high_memory", &Settings::high_memory, 0, 1},
    {"near_full", &Settings::near_full, 0, 1},
    {"saturation", &Settings::saturation, 0, 1},
};

// A new knob of Settings needs a row above, and one in packaging/slated.toml.
static_assert(sizeof(Settings) == 328);

/// Rows of Table I by the running kernel; the newcomers of a row in the same order.
constexpr std::array<std::string_view, kClassCount> kClassNames = {
    "low_compute", "medium_compute", "high_compute", "medium_memory", "high_memory"};
constexpr std::string_view kRowKey = "beside";

template <std::size_t N>
const Knob* find_knob(const Knob (&knobs)[N], std::string_view name) {
  const auto* found = std::ranges::find(knobs, name, &Knob::name);
  return found == std::end(knobs) ? nullptr : found;
}

Result<void> set_knob(Settings& settings, const Knob& knob, const toml::node& node) {
  if (const auto* const flag = std::get_if<bool Settings::*>(&knob.member)) {
    const auto value = node.value_exact<bool>();
    if (!value) return bad("expected true or false");
    settings.** flag = *value;
    return {};
  }
  if (const auto* const whole = std::get_if<std::uint32_t Settings::*>(&knob.member)) {
    const auto value = integer_of(node, static_cast<std::int64_t>(knob.least),
                                  static_cast<std::int64_t>(knob.most));
    if (!value) return std::unexpected(value.error());
    settings.** whole = static_cast<std::uint32_t>(*value);
    return {};
  }
  const auto value = number_of(node, knob.least, knob.most);
  if (!value) return std::unexpected(value.error());
  if (const auto* const time = std::get_if<Milliseconds Settings::*>(&knob.member)) {
    settings.** time = Milliseconds(*value);
  } else {
    settings.*std::get<double Settings::*>(knob.member) = *value;
  }
  return {};
}

Result<void> set_row(std::array<bool, kClassCount>& row, const toml::node& node) {
  const auto wrong = [] { return bad("expected five of \"corun\" and \"solo\""); };
  const toml::array* const cells = node.as_array();
  if (cells == nullptr || cells->size() != kClassCount) return wrong();
  for (std::size_t column = 0; column < kClassCount; ++column) {
    const auto cell = cells->get(column)->value_exact<std::string>();
    if (cell != "corun" && cell != "solo") return wrong();
    row[column] = *cell == "corun";
  }
  return {};
}

Result<void> set_rows(CorunTable& rows, const toml::node& node, const std::string& file) {
  if (!node.is_table()) return bad("expected a table");
  return each_key(*node.as_table(), file,
                  [&](std::string_view key, const toml::node& row) -> Result<void> {
                    const auto found = std::ranges::find(kClassNames, key);
                    if (found == kClassNames.end()) return bad("unknown key");
                    return set_row(rows[found - kClassNames.begin()], row);
                  });
}

Result<void> set_table(Settings& settings, const toml::node& node, const std::string& file) {
  if (!node.is_table()) return bad("expected a table");
  const auto done = each_key(
      *node.as_table(), file, [&](std::string_view key, const toml::node& value) -> Result<void> {
        if (key == kRowKey) return set_rows(settings.table, value, file);
        const Knob* const knob = find_knob(kTableKnobs, key);
        return knob != nullptr ? set_knob(settings, *knob, value) : bad("unknown key");
      });
  if (!done) return done;
  if (settings.medium_compute > settings.high_compute ||
      settings.medium_memory > settings.high_memory) {
    return bad("a medium threshold is above the high one");
  }
  return {};
}

std::string knob_text(const Settings& settings, const Knob& knob) {
  if (const auto* const time = std::get_if<Milliseconds Settings::*>(&knob.member))
    return fmt::format("{} = {}\n", knob.name, (settings.**time).count());
  if (const auto* const whole = std::get_if<std::uint32_t Settings::*>(&knob.member))
    return fmt::format("{} = {}\n", knob.name, settings.**whole);
  if (const auto* const flag = std::get_if<bool Settings::*>(&knob.member))
    return fmt::format("{} = {}\n", knob.name, settings.**flag);
  return fmt::format("{} = {}\n", knob.name, settings.*std::get<double Settings::*>(knob.member));
}

}  // namespace

Result<void> set_scheduler(Settings& settings, const toml::node& node, const std::string& file) {
  if (!node.is_table()) return bad("expected a table");
  return each_key(*node.as_table(), file,
                  [&](std::string_view key, const toml::node& value) -> Result<void> {
                    if (key == "table") return set_table(settings, value, file);
                    const Knob* const knob = find_knob(kKnobs, key);
                    return knob != nullptr ? set_knob(settings, *knob, value) : bad("unknown key");
                  });
}

std::string scheduler_text(const Settings& settings) {
  std::string text = "[scheduler]\n";
  for (const Knob& knob : kKnobs) text += knob_text(settings, knob);
  text += "[scheduler.table]\n";
  for (const Knob& knob : kTableKnobs) text += knob_text(settings, knob);
  text += fmt::format("[scheduler.table.{}]\n", kRowKey);
  for (std::size_t row = 0; row < kClassCount; ++row) {
    text += fmt::format("{} = [", kClassNames[row]);
    for (const bool corun : settings.table[row]) text += corun ? "\"corun\"," : "\"solo\",";
    text += "]\n";
  }
  return text;
}

}  // namespace slate::daemon
