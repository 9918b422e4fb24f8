// The daemon's log: a thin front of spdlog, so that only log.cc includes its headers. A line at
// warning or above names a client or machine that malfunctions. Normal running is silent above
// debug. Not for libslate, which writes to stderr through client/session/say.h. Thread: any.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/result.h"

namespace slate {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kOff };

/// Parses "trace", "debug", "info", "warning", "error" or "off". Errors: kInvalidValue for anything
/// else.
Result<LogLevel> parse_log_level(std::string_view name);

/// Sets the level and the name that every line carries ("slated", "engine 0"). Requires: it is
/// called once, before other threads start.
void set_up_log(std::string_view process_name, LogLevel level);

/// Writes one line, if the level is enabled.
void log_text(LogLevel level, std::string_view text);
bool log_enabled(LogLevel level);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace slate
