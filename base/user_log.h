// Lines of the log that a user can cause at will. Each user has some a minute; those beyond are
// left out, and counted. So nobody fills the log, or hides in it what others did. Thread: any, but
// for LogShares.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "base/log.h"

namespace slate {

/// Who may write a line now. Pure: the time is the caller's. Thread: one at a time.
class LogShares {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::uint32_t kLinesOfUser = 60;  // lines in a window
  static constexpr std::chrono::seconds kWindow{60};
  /// Users who are counted one by one. Further ones have one share together.
  static constexpr std::size_t kMostUsers = 1024;

  /// Lines of the user that were left out in the window before; nothing: this one is, too.
  std::optional<std::uint64_t> take(uid_t uid, Time now);

 private:
  struct Share {
    Time begin;
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
  };
  std::map<uid_t, Share> shares_;
};

/// Stands for the user where it is not known.
inline constexpr uid_t kUnknownUser = ~uid_t{0};

/// Writes one line that a program of user `uid` caused, if the user has lines left.
void log_text_of_user(uid_t uid, LogLevel level, std::string_view text);

template <typename... Args>
void log_of_user(uid_t uid, LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level))
    log_text_of_user(uid, level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace slate
