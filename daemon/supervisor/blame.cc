#include "daemon/supervisor/blame.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {

Blame::Counted Blame::count(std::uint32_t uid, const std::string& what, const Limits& limits,
                            Clock::time_point now) {
  forget_old(now);
  User& user = users_[uid];
  user.incidents.push_back(now);
  user.last = what;
  Counted counted{.incidents = static_cast<std::uint32_t>(user.incidents.size())};
  if (limits.bar_after == 0 || counted.incidents < limits.bar_after) return counted;
  counted.barred = true;
  user.until = now + limits.bar;
  user.incidents.clear();  // afterwards he begins anew
  return counted;
}

std::optional<Blame::Barred> Blame::barred(std::uint32_t uid, Clock::time_point now) const {
  const auto found = users_.find(uid);
  if (found == users_.end() || now >= found->second.until) return std::nullopt;
  return Barred{.uid = uid,
                .left = std::chrono::ceil<std::chrono::seconds>(found->second.until - now),
                .last = found->second.last};
}

std::vector<Blame::Barred> Blame::all_barred(Clock::time_point now) const {
  std::vector<Barred> all;
  for (const auto& [uid, user] : users_) {
    if (auto one = barred(uid, now)) all.push_back(std::move(*one));
  }
  return all;
}

void Blame::forget_old(Clock::time_point now) {
  for (auto& [uid, user] : users_)
    std::erase_if(user.incidents, [now](Clock::time_point at) { return at + kWindow <= now; });
  std::erase_if(users_, [now](const auto& each) {
    return each.second.incidents.empty() && now >= each.second.until;
  });
}

std::string bar_reason(const Blame::Barred& barred) {
  return fmt::format("programs of uid {} are barred for {} s more; the last reason: {}", barred.uid,
                     barred.left.count(), barred.last);
}

}  // namespace slate::daemon
