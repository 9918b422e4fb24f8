#include "daemon/supervisor/blame.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {
namespace {

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

Clock::time_point time_of(const nlohmann::json& nanoseconds) {
  return Clock::time_point(std::chrono::nanoseconds(nanoseconds.get<std::int64_t>()));
}

}  // namespace

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

nlohmann::json Blame::hand_over() const {
  nlohmann::json state = nlohmann::json::array();
  for (const auto& [uid, user] : users_) {
    nlohmann::json incidents = nlohmann::json::array();
    for (const Clock::time_point at : user.incidents) incidents.push_back(nanoseconds(at));
    state.push_back({{"uid", uid},
                     {"incidents", incidents},
                     {"until", nanoseconds(user.until)},
                     {"last", user.last}});
  }
  return state;
}

void Blame::take_over(const nlohmann::json& state) {
  for (const nlohmann::json& each : state) {
    User& user = users_[each.at("uid").get<std::uint32_t>()];
    for (const nlohmann::json& at : each.at("incidents")) user.incidents.push_back(time_of(at));
    user.until = time_of(each.at("until"));
    user.last = each.at("last").get<std::string>();
  }
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
