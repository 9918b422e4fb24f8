// SettingsDesk: serves `slatectl set`. It finds the sessions, checks the user, tells the engine,
// and keeps lasting settings. Supervisor thread only.
#pragma once

#include <string>
#include <vector>

#include "daemon/profile/program_store.h"
#include "daemon/supervisor/registry.h"
#include "ipc/messages.h"

namespace slate::daemon {

class SettingsDesk {
 public:
  SettingsDesk(const UserRules& rules, ProgramStore& programs, Registry& registry)
      : rules_(rules), programs_(programs), registry_(registry) {}

  /// Serves kSetSession, kSetProgram and kForgetProgram. Returns JSON {"sessions": [...], "kept":
  /// ...} (docs/slatectl.md). After an error nothing has changed.
  Result<std::string> change(const ipc::ControlRequest& request, const std::string& text,
                             std::uint32_t asker);

 private:
  using Changes = std::vector<std::pair<std::uint64_t, Standing>>;

  Result<Changes> plan(const std::vector<std::uint64_t>& sessions, const AskedSettings& asked,
                       std::uint32_t asker) const;
  std::string carry_out(const Changes& changes, const std::string& kept);
  Result<std::string> set_program(const std::string& program, std::uint32_t uid,
                                  const AskedSettings& asked, std::uint32_t asker);
  Result<std::string> forget_program(const std::string& program, std::uint32_t uid,
                                     std::uint32_t asker);

  const UserRules& rules_;
  ProgramStore& programs_;
  Registry& registry_;
};

}  // namespace slate::daemon
