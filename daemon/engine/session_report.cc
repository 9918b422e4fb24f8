// What a client tells without asking for anything: the functions that it missed.
#include <algorithm>
#include <cctype>

#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kUnsupportedCall>& call) {
  const std::string_view name(reinterpret_cast<const char*>(call.tail.data()), call.tail.size());
  const bool is_name = !name.empty() && name.size() <= ipc::kMostNameBytes &&
                       std::ranges::all_of(name, [](unsigned char letter) {
                         return std::isalnum(letter) != 0 || letter == '_';
                       });
  if (!is_name) return slate::fail(ErrorCode::kProtocol, "a function's name that is none");
  if (hooks_.unsupported) hooks_.unsupported(name);
  return {};
}

}  // namespace slate::daemon
