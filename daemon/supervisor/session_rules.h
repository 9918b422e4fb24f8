// The rules of a session's weight and priority. Pure decisions on values. In rising order of rank:
// the configuration, the program's environment, `slatectl set --program`, `slatectl set`.
// The administrator (root, or slated's user) may set anything. The value that he has set is the
// most that the session's own user may choose, as with nice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/profile/program_store.h"
#include "daemon/session_settings.h"
#include "daemon/supervisor/user_rules.h"

namespace slate::daemon {

struct AskedSettings {
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
};

/// A session's settings, and the most that its own user may choose.
struct Standing {
  SessionSettings now;
  SessionSettings most;
};

/// kInvalidValue for numbers out of range, and when nothing is asked for.
Result<void> check_asked(const AskedSettings& asked);

/// The most that a program's user may choose before anybody has set anything.
SessionSettings most_of(const UserRules& rules, const std::string& program, std::uint32_t uid);

/// The settings of a session that begins. `wishes`: from its environment. A wish above the limit is
/// cut; one out of range is ignored.
Standing at_start(const UserRules& rules, const std::string& program, std::uint32_t uid,
                  const AskedSettings& wishes, const std::optional<KeptSettings>& kept);

/// The settings after a change by `asker`. kPermission for more than he may choose.
Result<Standing> changed(const Standing& before, const AskedSettings& asked, std::uint32_t asker);

}  // namespace slate::daemon
