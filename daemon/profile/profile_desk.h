// The profile desk: what `slatectl profile` asks of and changes in a profile table. No database and
// no lock: whoever calls it has the table to itself, or gives it a copy where nothing is changed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scheduler/profile.h"
#include "scheduler/settings.h"

namespace slate::daemon {

struct ProfileRequest {
  enum class Kind { kShow, kSet, kForget, kPin, kUnpin };
  Kind kind = Kind::kShow;
  /// Whose rows, as in selects() of base/kernel_name.h; empty: all (not for kSet).
  std::string kernel;
  // kSet: what is given replaces what was measured; a negative number takes that back.
  std::optional<double> compute, memory;
  std::optional<int> form;  // scheduler::Form
  /// kPin, kUnpin: 2 to 8 kernels that run at once, by name or as `#` and the row's id. Which rows
  /// of a kernel's grids is all the same.
  std::vector<std::string> group;
  scheduler::Sharing sharing = scheduler::Sharing::kAlone;
  std::vector<std::uint32_t> sms;      // kPlaced: of each, in steps of the device's units
  std::vector<scheduler::Form> forms;  // of each; empty: native

  bool changes_table() const { return kind != Kind::kShow; }
};

/// The request as it travels in a kProfileRequest, and back: kProtocol for anything else.
std::string profile_request_text(const ProfileRequest& request);
Result<ProfileRequest> parse_profile_request(std::string_view text);
/// What the text of a kProfileGroup asks for: {"kernels": [names], "sharing": "alone", "together",
/// "placed" or "auto", "sms": [numbers], "forms": ["native" or "worker"]}. kInvalidValue with a
/// sentence for anything else.
Result<ProfileRequest> parse_group_request(std::string_view text);

/// JSON: the rows and groups (docs/slatectl.md) for kShow, else {"changed": number of rows}.
/// kInvalidValue when no row is of that kernel, or a value is out of range. `table` changes only if
/// changes_table().
Result<std::string> answer_profile_request(const ProfileRequest& request,
                                           scheduler::ProfileTable& table,
                                           const scheduler::Machine& machine,
                                           const scheduler::Settings& settings);

}  // namespace slate::daemon
