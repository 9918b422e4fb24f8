// UserRules: what the configuration's [[user]], [[group]] and [[program]] tables mean for a user of
// this machine. Names are looked up once, when it is made. Thread: any.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/config.h"
#include "daemon/supervisor/domain.h"

namespace slate::daemon {

/// Who a program runs as: the kernel's word.
struct Identity {
  uid_t uid = 0;
  std::vector<gid_t> groups;
};

class UserRules {
 public:
  /// Says in the log which names this machine does not know; their tables mean nobody.
  explicit UserRules(const Config& config);

  const Config& config() const { return config_; }
  /// The user's table, else the first one of his groups, else the defaults.
  UserSettings of(const Identity& who) const;
  /// Where the user's sessions begin.
  Domain home_of(const Identity& who) const;
  /// The most sessions of a user at a time.
  std::uint32_t max_sessions_of(const Identity& who) const;
  /// Milliseconds for which a session may keep other users' launches waiting; 0: no bound. A
  /// program's table for everybody only lowers it, but for the administrator's programs.
  double max_blocking_of(const Identity& who, const std::string& program) const;
  /// What sessions of this program begin with. A table for everybody raises nothing above the
  /// defaults, except for the administrator's programs.
  SessionSettings program_of(const std::string& program, uid_t uid) const;

 private:
  Config config_;
  std::vector<std::pair<uid_t, UserSettings>> users_;
  std::vector<std::pair<gid_t, UserSettings>> groups_;
  std::vector<std::pair<uid_t, ProgramSettings>> programs_;  // those with a user
};

bool is_administrator(uid_t uid);

}  // namespace slate::daemon
