// The profile desk: answers what `slatectl profile` asks of a profile table, and changes the table.
// No database and no lock. Requires: the caller has the table to itself, or passes a copy where
// nothing is changed.
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
  /// Kernel of the rows, as in selects() of base/kernel_name.h; empty: all (not for kSet).
  std::string kernel;
  // kSet: these values replace what was measured; a negative number takes that back.
  std::optional<double> compute, memory;
  std::optional<int> form;  // scheduler::Form
  /// kPin, kUnpin: 2 to 8 kernels that run at once, by name or as `#` and the row's id. Any row of
  /// a kernel's grids will do.
  std::vector<std::string> group;
  scheduler::Sharing sharing = scheduler::Sharing::kAlone;
  std::vector<std::uint32_t> sms;  // kPlaced: SMs of each kernel, in steps of the device's units
  std::vector<scheduler::Form> forms;  // form of each kernel; empty: native

  bool changes_table() const { return kind != Kind::kShow; }
};

/// The request as text for a kProfileRequest, and back. kProtocol for other text.
std::string profile_request_text(const ProfileRequest& request);
Result<ProfileRequest> parse_profile_request(std::string_view text);
/// Parses the text of a kProfileGroup: {"kernels": [names], "sharing": "alone", "together",
/// "placed" or "auto", "sms": [numbers], "forms": ["native" or "worker"]}.
/// kInvalidValue, with a sentence, for anything else.
Result<ProfileRequest> parse_group_request(std::string_view text);

/// Returns JSON: the rows and groups (docs/slatectl.md) for kShow, else {"changed": number of
/// rows}. kInvalidValue when no row is of that kernel, or a value is out of range. Changes `table`
/// only if changes_table().
Result<std::string> answer_profile_request(const ProfileRequest& request,
                                           scheduler::ProfileTable& table,
                                           const scheduler::Machine& machine,
                                           const scheduler::Settings& settings);

}  // namespace slate::daemon
