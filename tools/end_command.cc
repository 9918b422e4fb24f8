#include "tools/end_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/control_client.h"
#include "tools/json_fields.h"

namespace slate::tools {

using nlohmann::json;

Result<std::string> end_text(const std::string& json_text) {
  const json answer = json::parse(json_text, nullptr, false);
  if (!answer.is_object()) return fail(ErrorCode::kProtocol, "slated's answer is not JSON");
  std::string out;
  for (const json& session : list(answer, "sessions")) {
    out += fmt::format("session {} (uid {}, pid {}, {}): ended\n", number(session, "id"),
                       number(session, "uid"), number(session, "pid"), text(session, "program"));
  }
  return out;
}

int end_command(const std::string& runtime_dir, const std::string& target) {
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kEndSession;
  auto answer = ask_daemon(runtime_dir, request, target);
  if (answer) answer = end_text(*answer);
  return print_answer(answer);
}

}  // namespace slate::tools
