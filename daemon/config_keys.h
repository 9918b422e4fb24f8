// How the tables of slated's TOML file are read: every key is a row of a list, so that an unknown
// key or a wrong type is an error with its line, and a typing mistake is not silently a default.
// For config.cc and scheduler_config.cc only, which pay for toml++'s header.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/settings.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace slate::daemon {

inline std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidValue, std::move(message));
}

/// "file:line: " of a part of the file.
inline std::string place_of(const toml::source_region& source, const std::string& file) {
  return fmt::format("{}:{}: ", file, source.begin.line);
}

/// Gives every key of `table` to `set(key, node)`, whose errors get file, line and key in front;
/// an error that names its place already ("file:") stays as it is.
template <typename Set>
Result<void> each_key(const toml::table& table, const std::string& file, Set set) {
  for (const auto& [key, node] : table) {
    const Result<void> done = set(key.str(), node);
    if (done) continue;
    if (done.error().message.starts_with(file + ":")) return done;
    return bad(
        fmt::format("{}{}: {}", place_of(key.source(), file), key.str(), done.error().message));
  }
  return {};
}

/// A number from `least` to `most`, whole or not.
inline Result<double> number_of(const toml::node& node, double least, double most) {
  const auto value = node.value<double>();
  if (!node.is_number() || !value || !(*value >= least && *value <= most))
    return bad(fmt::format("expected a number from {} to {}", least, most));
  return *value;
}

inline Result<std::int64_t> integer_of(const toml::node& node, std::int64_t least,
                                       std::int64_t most) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < least || *value > most)
    return bad(fmt::format("expected a whole number from {} to {}", least, most));
  return *value;
}

/// Reads the [scheduler] table over `settings`. In scheduler_config.cc.
Result<void> set_scheduler(scheduler::Settings& settings, const toml::node& node,
                           const std::string& file);

}  // namespace slate::daemon
