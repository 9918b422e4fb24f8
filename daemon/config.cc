// Reading slated's TOML file: a key is a row of kKeys. The [scheduler] table is read in
// scheduler_config.cc.
#include "daemon/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

#include "daemon/config_keys.h"
#include "scheduler/policies.h"

namespace slate::daemon {
namespace {

using Setter = Result<void> (*)(Config&, const toml::node&);

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

/// A number, or a string for the units.
std::string size_text(const toml::node& node) {
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  return node.value_exact<std::string>().value_or("");
}

Result<void> set_memory_limit(Config& config, const toml::node& node) {
  const auto limit = parse_memory_limit(size_text(node));
  if (!limit) return std::unexpected(limit.error());
  config.memory_limit = *limit;
  return {};
}

Result<void> set_cache_size(Config& config, const toml::node& node) {
  const auto size = parse_size(size_text(node));
  if (!size) return std::unexpected(size.error());
  config.cache_size = *size;
  return {};
}

Result<void> set_max_sessions(Config& config, const toml::node& node) {
  const auto value = integer_of(node, 1, 65536);
  if (!value) return std::unexpected(value.error());
  config.max_sessions = static_cast<std::uint32_t>(*value);
  return {};
}

Result<void> set_form(Config& config, const toml::node& node) {
  const auto name = node.value_exact<std::string>();
  if (!name || !parse_form_choice(*name)) return bad("expected auto, native, worker or slice");
  config.form = *name;
  return {};
}

Result<void> set_kill_grace(Config& config, const toml::node& node) {
  const auto value = number_of(node, 0, 86400);
  if (!value) return std::unexpected(value.error());
  config.kill_grace_seconds = *value;
  return {};
}

Result<void> set_policy(Config& config, const toml::node& node) {
  const auto name = node.value_exact<std::string>();
  if (!name) return bad("expected a string");
  if (const auto known = check_policy(*name); !known) return known;
  config.policy = *name;
  return {};
}

Result<void> set_max_weight(Config& config, const toml::node& node) {
  const auto value = number_of(node, kLeastWeight, kMostWeight);
  if (!value) return std::unexpected(value.error());
  config.max_weight = *value;
  return {};
}

Result<void> set_trace_events(Config& config, const toml::node& node) {
  const auto value = integer_of(node, 0, 1 << 24);
  if (!value) return std::unexpected(value.error());
  config.trace_events = static_cast<std::uint32_t>(*value);
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
    {"form", set_form},
    {"cache_dir", set_string<&Config::cache_dir>},
    {"cache_size", set_cache_size},
    {"ptxas", set_string<&Config::ptxas>},
    {"policy", set_policy},
    {"max_weight", set_max_weight},
    {"state_dir", set_string<&Config::state_dir>},
    {"trace_events", set_trace_events},
};

Result<void> set_program_key(ProgramSettings& program, std::string_view key,
                             const toml::node& node) {
  if (key == "name") {
    const auto name = node.value_exact<std::string>();
    if (!name || name->empty()) return bad("expected a program's name");
    program.name = *name;
    return {};
  }
  if (key == "weight") {
    const auto weight = number_of(node, kLeastWeight, kMostWeight);
    if (!weight) return std::unexpected(weight.error());
    program.settings.weight = *weight;
    return {};
  }
  if (key != "priority") return bad("unknown key");
  const auto priority = integer_of(node, kLeastPriority, kMostPriority);
  if (!priority) return std::unexpected(priority.error());
  program.settings.priority = static_cast<std::int32_t>(*priority);
  return {};
}

Result<void> set_programs(Config& config, const toml::node& node, const std::string& file) {
  if (!node.is_array_of_tables()) return bad("expected [[program]] tables");
  for (const toml::node& part : *node.as_array()) {
    ProgramSettings program;
    const auto done =
        each_key(*part.as_table(), file, [&](std::string_view key, const toml::node& value) {
          return set_program_key(program, key, value);
        });
    if (!done) return done;
    if (program.name.empty()) return bad(place_of(part.source(), file) + "a program without name");
    config.programs.push_back(std::move(program));
  }
  return {};
}

Result<void> set_key(Config& config, std::string_view key, const toml::node& node,
                     const std::string& file) {
  if (key == "scheduler") return set_scheduler(config.scheduler, node, file);
  if (key == "program") return set_programs(config, node, file);
  const auto* const row =
      std::ranges::find(kKeys, key, &std::pair<std::string_view, Setter>::first);
  return row != std::end(kKeys) ? row->second(config, node) : bad("unknown key");
}

/// A number, with K, M, G or T behind it if `units`; none for anything else or more than 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text, bool units) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (status != std::errc{}) return std::nullopt;
  if (unit.empty()) return number;
  const auto position = std::string_view("KMGT").find(unit);
  if (!units || unit.size() > 1 || position == std::string_view::npos) return std::nullopt;
  const int shift = 10 * (static_cast<int>(position) + 1);
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

}  // namespace

std::uint64_t MemoryLimit::bytes_of(std::uint64_t total) const {
  if (!is_percent) return std::min(value, total);
  return total / 100 * value + total % 100 * value / 100;
}

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  const auto wrong = [&] {
    return bad(
        fmt::format("memory limit '{}': expected bytes, or a number and K, M, G, T or %", text));
  };
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  const auto number = parse_number(text, !is_percent);
  if (!number || *number == 0 || (is_percent && *number > 100)) return wrong();
  return MemoryLimit{is_percent, *number};
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto number = parse_number(text, true);
  if (!number) {
    return bad(fmt::format("size '{}': expected bytes, or a number and K, M, G or T", text));
  }
  return *number;
}

Result<void> check_policy(std::string_view name) {
  const auto names = scheduler::policy_names();
  if (std::ranges::find(names, name) != names.end()) return {};
  return bad(fmt::format("policy '{}': expected one of {}", name, fmt::join(names, ", ")));
}

SessionSettings Config::settings_of(std::string_view program) const {
  const auto found = std::ranges::find(programs, program, &ProgramSettings::name);
  return found != programs.end() ? found->settings : SessionSettings{};
}

Result<Config> parse_config(std::string_view text, const std::string& name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return bad(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  Config config;
  const auto done =
      each_key(parsed.table(), name, [&](std::string_view key, const toml::node& node) {
        return set_key(config, key, node, name);
      });
  if (!done) return std::unexpected(done.error());
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
