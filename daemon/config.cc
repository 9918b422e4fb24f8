// Reading slated's TOML file. Every key is one row of kKeys: an unknown key or a wrong type is an
// error with its line, so that a typing mistake is not silently a default.
#include "daemon/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace slate::daemon {
namespace {

using Setter = Result<void> (*)(Config&, const toml::node&);

std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidValue, std::move(message));
}

template <auto Member>
Result<void> set_string(Config& config, const toml::node& node) {
  const auto value = node.value_exact<std::string>();
  if (!value) return bad("expected a string");
  config.*Member = *value;
  return {};
}

template <auto Member>
Result<void> set_bool(Config& config, const toml::node& node) {
  const auto value = node.value_exact<bool>();
  if (!value) return bad("expected true or false");
  config.*Member = *value;
  return {};
}

Result<void> set_log_level(Config& config, const toml::node& node) {
  const auto name = node.value_exact<std::string>();
  if (!name) return bad("expected a string");
  const auto level = parse_log_level(*name);
  if (!level) return std::unexpected(level.error());
  config.log_level = *level;
  return {};
}

Result<void> set_memory_limit(Config& config, const toml::node& node) {
  std::string text;
  if (const auto number = node.value_exact<std::int64_t>()) {
    text = std::to_string(*number);
  } else if (const auto string = node.value_exact<std::string>()) {
    text = *string;
  }
  const auto limit = parse_memory_limit(text);
  if (!limit) return std::unexpected(limit.error());
  config.memory_limit = *limit;
  return {};
}

Result<void> set_max_sessions(Config& config, const toml::node& node) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 1 || *value > 65536) return bad("expected a number from 1 to 65536");
  config.max_sessions = static_cast<std::uint32_t>(*value);
  return {};
}

Result<void> set_kill_grace(Config& config, const toml::node& node) {
  const auto value = node.value<double>();
  if (!value || !(*value >= 0) || *value > 86400) return bad("expected seconds from 0 to 86400");
  config.kill_grace_seconds = *value;
  return {};
}

constexpr std::pair<std::string_view, Setter> kKeys[] = {
    {"device", set_string<&Config::device>},
    {"runtime_dir", set_string<&Config::runtime_dir>},
    {"log_level", set_log_level},
    {"memory_limit", set_memory_limit},
    {"max_sessions", set_max_sessions},
    {"kill_grace_seconds", set_kill_grace},
    {"kill_stuck_engine", set_bool<&Config::kill_stuck_engine>},
    {"spare_engine", set_bool<&Config::spare_engine>},
};

}  // namespace

std::uint64_t MemoryLimit::bytes_of(std::uint64_t total) const {
  if (!is_percent) return std::min(value, total);
  return total / 100 * value + total % 100 * value / 100;
}

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto wrong = [&] {
    return bad(
        fmt::format("memory limit '{}': expected bytes, or a number and K, M, G, T or %", text));
  };
  if (status != std::errc{} || number == 0 || unit.size() > 1) return wrong();
  if (unit == "%") {
    if (number > 100) return wrong();
    return MemoryLimit{true, number};
  }
  constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  if (!unit.empty()) {
    const auto position = kUnits.find(unit);
    if (position == std::string_view::npos) return wrong();
    shift = 10 * (static_cast<int>(position) + 1);
  }
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return wrong();
  return MemoryLimit{false, number << shift};
}

Result<Config> parse_config(std::string_view text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return bad(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  Config config;
  for (const auto& [key, node] : parsed.table()) {
    const auto* row = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&](const auto& entry) { return entry.first == key.str(); });
    const auto line = key.source().begin.line;
    if (row == std::end(kKeys))
      return bad(fmt::format("{}:{}: unknown key '{}'", name, line, key.str()));
    if (const auto set = row->second(config, node); !set) {
      return bad(fmt::format("{}:{}: {}: {}", name, line, key.str(), set.error().message));
    }
  }
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return fail_errno(path);
  return parse_config(text.str(), path);
}

}  // namespace slate::daemon
