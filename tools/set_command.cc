#include "tools/set_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/control_client.h"
#include "tools/json_fields.h"

namespace slate::tools {
namespace {

using nlohmann::json;

std::string kept_text(const json& kept) {
  std::string out =
      fmt::format("kept for {} of uid {}:", text(kept, "program"), number(kept, "uid"));
  if (const auto weight = real(kept, "weight")) out += fmt::format(" weight {:g}", *weight);
  if (const auto priority = real(kept, "priority")) out += fmt::format(" priority {:g}", *priority);
  return out + "\n";
}

ipc::ControlRequest control_request(const SetRequest& set) {
  ipc::ControlRequest request;
  request.verb = !set.target.empty() ? ipc::ControlVerb::kSetSession
                 : set.forget        ? ipc::ControlVerb::kForgetProgram
                                     : ipc::ControlVerb::kSetProgram;
  if (set.weight) request.fields |= ipc::kHasWeight;
  if (set.priority) request.fields |= ipc::kHasPriority;
  if (set.uid) request.fields |= ipc::kHasUid;
  request.weight = set.weight.value_or(0);
  request.priority = set.priority.value_or(0);
  request.uid = set.uid.value_or(0);
  return request;
}

/// What is wrong with the request by itself; empty if nothing.
std::string contradiction(const SetRequest& set) {
  if (set.target.empty() == set.program.empty())
    return "name either a session, process or program, or --program NAME";
  if (set.forget && (set.program.empty() || set.weight || set.priority))
    return "--forget goes with --program NAME alone";
  if (set.uid && set.program.empty()) return "--uid goes with --program NAME";
  if (!set.forget && !set.weight && !set.priority) return "give --weight, --priority or both";
  return {};
}

}  // namespace

Result<std::string> set_text(const std::string& json_text) {
  const json answer = json::parse(json_text, nullptr, false);
  if (!answer.is_object()) return fail(ErrorCode::kProtocol, "slated's answer is not JSON");
  std::string out;
  for (const json& session : list(answer, "sessions")) {
    out += fmt::format("session {} (pid {}, {}): weight {:g}, priority {:g}\n",
                       number(session, "id"), number(session, "pid"), text(session, "program"),
                       real(session, "weight").value_or(1), real(session, "priority").value_or(0));
  }
  if (answer.contains("kept") && answer["kept"].is_object()) out += kept_text(answer["kept"]);
  return out;
}

int set_command(const std::string& runtime_dir, const SetRequest& set) {
  if (const std::string wrong = contradiction(set); !wrong.empty()) {
    fmt::print(stderr, "slatectl: {}\n", wrong);
    return 2;
  }
  auto answer =
      ask_daemon(runtime_dir, control_request(set), set.target.empty() ? set.program : set.target);
  if (answer) answer = set_text(*answer);
  return print_answer(answer);
}

}  // namespace slate::tools
