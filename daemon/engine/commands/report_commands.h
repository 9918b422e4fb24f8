// ReportCommands: reports of a client, without an answer. Session thread.
#pragma once

#include <functional>
#include <string_view>

#include "daemon/engine/commands/call.h"

namespace slate::daemon {

class ReportCommands {
 public:
  /// `unsupported` gets the name of each function that the client missed. May be empty.
  explicit ReportCommands(std::function<void(std::string_view function)> unsupported)
      : unsupported_(std::move(unsupported)) {}

  Result<void> on(const Call<ipc::CommandType::kUnsupportedCall>& call);

 private:
  const std::function<void(std::string_view)> unsupported_;
};

}  // namespace slate::daemon
