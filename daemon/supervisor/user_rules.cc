#include "daemon/supervisor/user_rules.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "daemon/supervisor/whole_number.h"

namespace slate::daemon {
namespace {

// NOLINTBEGIN(concurrency-mt-unsafe): at the start, before there are threads
std::optional<std::uint32_t> user_number(const std::string& name) {
  if (const auto number = whole_number<std::uint32_t>(name)) return number;
  const passwd* const known = ::getpwnam(name.c_str());
  if (known != nullptr) return known->pw_uid;
  log_warning("the configuration names user {}, whom this machine does not know", name);
  return std::nullopt;
}

std::optional<std::uint32_t> group_number(const std::string& name) {
  if (const auto number = whole_number<std::uint32_t>(name)) return number;
  const group* const known = ::getgrnam(name.c_str());
  if (known != nullptr) return known->gr_gid;
  log_warning("the configuration names group {}, which this machine does not know", name);
  return std::nullopt;
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

bool is_administrator(uid_t uid) {
  return uid == 0 || uid == ::geteuid();
}

UserRules::UserRules(const Config& config) : config_(config) {
  for (const UserSettings& each : config.users) {
    if (const auto number = user_number(each.name)) users_.emplace_back(*number, each);
  }
  for (const UserSettings& each : config.groups) {
    if (const auto number = group_number(each.name)) groups_.emplace_back(*number, each);
  }
  for (const ProgramSettings& each : config.programs) {
    if (each.user.empty()) continue;
    if (const auto number = user_number(each.user)) programs_.emplace_back(*number, each);
  }
}

UserSettings UserRules::of(const Identity& who) const {
  for (const auto& [uid, settings] : users_) {
    if (uid == who.uid) return settings;
  }
  for (const auto& [gid, settings] : groups_) {
    if (std::ranges::find(who.groups, gid) != who.groups.end()) return settings;
  }
  return {};
}

/// Among those that are not fenced, a user that is to be fenced has an engine of his own.
Domain UserRules::home_of(const Identity& who) const {
  const Domain own{Domain::Kind::kUser, who.uid};
  const auto for_everybody =
      config_.sharing == SharingChoice::kDefault ? SharingChoice::kFenced : config_.sharing;
  const auto is_users = [&](const auto& each) { return each.first == who.uid; };
  const bool has_table = std::ranges::any_of(users_, is_users);
  SharingChoice choice = of(who).sharing;
  if (choice == SharingChoice::kTrusted && has_table) return own;
  if (choice == SharingChoice::kTrusted) {
    const auto is_his = [&](const auto& each) {
      return std::ranges::find(who.groups, each.first) != who.groups.end();
    };
    return {Domain::Kind::kGroup, std::ranges::find_if(groups_, is_his)->first};
  }
  if (choice == SharingChoice::kDefault) choice = for_everybody;
  const bool is_apart =
      choice == SharingChoice::kUser ||
      (choice == SharingChoice::kFenced && for_everybody == SharingChoice::kTrusted);
  return is_apart ? own : Domain{};
}

std::uint32_t UserRules::max_sessions_of(const Identity& who) const {
  const std::uint32_t own = of(who).max_sessions;
  return own != 0 ? own : config_.max_sessions_per_user;
}

double UserRules::max_blocking_of(const Identity& who, const std::string& program) const {
  double bound = of(who).max_blocking_ms;
  if (bound == kAsOthers) bound = config_.max_blocking_ms;
  for (const auto& [user, rule] : programs_) {
    if (user == who.uid && rule.name == program)
      return rule.max_blocking_ms == kAsOthers ? bound : rule.max_blocking_ms;
  }
  for (const ProgramSettings& rule : config_.programs) {
    if (!rule.user.empty() || rule.name != program || rule.max_blocking_ms == kAsOthers) continue;
    const bool lower = rule.max_blocking_ms != 0 && (bound == 0 || rule.max_blocking_ms < bound);
    return lower || is_administrator(who.uid) ? rule.max_blocking_ms : bound;
  }
  return bound;
}

SessionSettings UserRules::program_of(const std::string& program, uid_t uid) const {
  for (const auto& [user, rule] : programs_) {
    if (user == uid && rule.name == program) return rule.settings;
  }
  const SessionSettings usual;
  for (const ProgramSettings& rule : config_.programs) {
    if (!rule.user.empty() || rule.name != program) continue;
    if (is_administrator(uid)) return rule.settings;
    return {std::min(rule.settings.weight, usual.weight),
            std::min(rule.settings.priority, usual.priority)};
  }
  return usual;
}

}  // namespace slate::daemon
