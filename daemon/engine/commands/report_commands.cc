#include "daemon/engine/commands/report_commands.h"

#include <algorithm>
#include <cctype>

namespace slate::daemon {

using ipc::CommandType;

Result<void> ReportCommands::on(const Call<CommandType::kUnsupportedCall>& call) {
  const std::string_view name(reinterpret_cast<const char*>(call.tail.data()), call.tail.size());
  const bool is_name = !name.empty() && name.size() <= ipc::kMostNameBytes &&
                       std::ranges::all_of(name, [](unsigned char letter) {
                         return std::isalnum(letter) != 0 || letter == '_';
                       });
  if (!is_name) return fail(ErrorCode::kProtocol, "a function's name that is none");
  if (unsupported_) unsupported_(name);
  return {};
}

}  // namespace slate::daemon
