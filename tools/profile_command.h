// slatectl profile: shows and changes what slate has learnt of kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace slate::tools {

struct ProfileChange {
  std::string kernel;
  std::optional<double> compute, memory;  // negative: back to the measured one
  std::string form;                       // native, worker, auto; empty: as it is
};

/// How a group of kernels is to run from now on.
struct GroupChange {
  std::vector<std::string> kernels;
  bool alone = false, together = false, automatic = false;  // one of them, or `sms`
  std::vector<std::uint32_t> sms;
  std::vector<std::string> forms;
};

/// A line a kernel for the JSON that slated sent (docs/slatectl.md). kProtocol when it is not that.
Result<std::string> profile_table(const std::string& json_text);
/// All that is known of the kernels that `kernel` means. kInvalidValue when there is none.
Result<std::string> profile_details(const std::string& json_text, const std::string& kernel);
/// The JSON with the rows that `kernel` means alone.
Result<std::string> profile_rows(const std::string& json_text, const std::string& kernel);

// Exit status: 0, 1 with a sentence on stderr, 2 for a request that contradicts itself.

/// All kernels for an empty `kernel`.
int profile_show_command(const std::string& runtime_dir, const std::string& kernel, bool as_json);
int profile_set_command(const std::string& runtime_dir, const ProfileChange& change);
int profile_group_command(const std::string& runtime_dir, const GroupChange& change);
int profile_forget_command(const std::string& runtime_dir, const std::string& kernel, bool all);

}  // namespace slate::tools
