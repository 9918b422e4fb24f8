#include "base/user_log.h"

#include "base/mutex.h"

namespace slate {

std::optional<std::uint64_t> LogShares::take(uid_t uid, Time now) {
  if (!shares_.contains(uid) && shares_.size() >= kMostUsers) {
    std::erase_if(shares_, [now](const auto& each) { return now - each.second.begin >= kWindow; });
    if (shares_.size() >= kMostUsers) uid = kUnknownUser;
  }
  Share& share = shares_.try_emplace(uid, Share{.begin = now}).first->second;
  std::uint64_t left_out = 0;
  if (now - share.begin >= kWindow) {
    left_out = share.left_out;
    share = {.begin = now};
  }
  if (share.lines >= kLinesOfUser) {
    ++share.left_out;
    return std::nullopt;
  }
  ++share.lines;
  return left_out;
}

void log_text_of_user(uid_t uid, LogLevel level, std::string_view text) {
  static Mutex mutex;
  static LogShares shares SLATE_GUARDED_BY(mutex);
  std::optional<std::uint64_t> left_out;
  {
    const MutexLock lock(mutex);
    left_out = shares.take(uid, LogShares::Time::clock::now());
  }
  if (!left_out) return;
  if (*left_out != 0) {
    log_text(level, fmt::format("user {}: {} lines were left out, as {} in {} s are the most", uid,
                                *left_out, LogShares::kLinesOfUser, LogShares::kWindow.count()));
  }
  log_text(level, text);
}

}  // namespace slate
