// slatectl set: weight and priority of a live session, or kept for a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace slate::tools {

struct SetRequest {
  std::string target;   // session, process or program that lives
  std::string program;  // or the program whose settings are kept
  bool forget = false;  // ... no longer
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
  std::optional<std::uint32_t> uid;  // whose program; the caller's own if not given
};

/// What slated's answer says to people.
Result<std::string> set_text(const std::string& json_text);

/// Exit status: 0, 1 with a sentence on stderr, 2 for a request that contradicts itself.
int set_command(const std::string& runtime_dir, const SetRequest& request);

}  // namespace slate::tools
