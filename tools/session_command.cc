#include "tools/session_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tools/control_client.h"
#include "tools/json_fields.h"

namespace slate::tools {
namespace {

using ipc::ControlVerb;
using nlohmann::json;

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr int kMostUnanswered = 100;  // questions

const char* past_of(ControlVerb verb) {
  switch (verb) {
    case ControlVerb::kSuspend:
      return "suspended";
    case ControlVerb::kResume:
      return "goes on";
    default:
      return "ended";
  }
}

bool renews(ControlVerb verb) {
  return verb == ControlVerb::kRenew || verb == ControlVerb::kUpgrade;
}

bool names(const std::vector<json>& sessions, std::uint64_t id) {
  return std::ranges::any_of(sessions, [id](const json& each) { return number(each, "id") == id; });
}

/// A flag of the engine's in a status.
bool engine_flag(const json& status, const char* key) {
  const auto engine = status.find("engine");
  return engine != status.end() && engine->is_object() && flag(*engine, key);
}

/// Whether the new engines are there, or all sessions have left theirs.
bool is_done(ControlVerb verb, const json& answer, const json& status) {
  if (renews(verb)) return !engine_flag(status, "renews");
  const std::vector<json> asked = list(answer, "sessions");
  return std::ranges::none_of(list(status, "sessions"), [&](const json& session) {
    return text(session, "state") == "leaving" && names(asked, number(session, "id"));
  });
}

/// What has not come about, although nothing is under way any more; empty: it has.
std::string what_failed(ControlVerb verb, const json& answer, const json& status) {
  if (renews(verb) && !engine_flag(status, "renewed"))
    return "the new engines did not start: slated's log says why";
  if (verb == ControlVerb::kUpgrade && number(status, "upgrades") == number(answer, "upgrades"))
    return "the new slated did not take over: slated's log says why";
  if (verb != ControlVerb::kSuspend) return {};
  for (const json& session : list(status, "sessions")) {
    const std::uint64_t id = number(session, "id");
    if (text(session, "state") == "suspended" || !names(list(answer, "sessions"), id)) continue;
    return fmt::format("session {} could not leave its engine: slated's log says why", id);
  }
  return {};
}

/// Waits until what was asked for has come about. A slated that is taken over may leave a question
/// without an answer. Errors: those of ask_daemon(); kUnavailable with the reason.
Result<void> wait_for(const std::string& runtime_dir, ControlVerb verb, const json& answer) {
  int unanswered = 0;
  while (true) {
    const auto text = ask_daemon(runtime_dir, {}, {});
    if (!text && (verb != ControlVerb::kUpgrade || ++unanswered > kMostUnanswered))
      return std::unexpected(text.error());
    const json status = json::parse(text.value_or(""), nullptr, false);
    if (!text || !is_done(verb, answer, status)) {
      std::this_thread::sleep_for(kLookAgain);
      continue;
    }
    const std::string why = what_failed(verb, answer, status);
    return why.empty() ? Result<void>() : fail(ErrorCode::kUnavailable, why);
  }
}

}  // namespace

Result<std::string> session_text(ControlVerb verb, const std::string& json_text) {
  const json answer = json::parse(json_text, nullptr, false);
  if (!answer.is_object()) return fail(ErrorCode::kProtocol, "slated's answer is not JSON");
  std::string out;
  for (const json& session : list(answer, "sessions")) {
    out += fmt::format("session {} (uid {}, pid {}, {}): {}\n", number(session, "id"),
                       number(session, "uid"), number(session, "pid"), text(session, "program"),
                       past_of(verb));
  }
  for (const json& session : list(answer, "stay")) {
    out += fmt::format("session {} (pid {}, {}) stays in its engine until it ends: {}\n",
                       number(session, "id"), number(session, "pid"), text(session, "program"),
                       text(session, "why"));
  }
  if (renews(verb)) out += "the engines are renewed\n";
  if (verb == ControlVerb::kUpgrade) out += "the installed slated has taken over\n";
  return out;
}

int session_command(const std::string& runtime_dir, ControlVerb verb, const std::string& target) {
  ipc::ControlRequest request;
  request.verb = verb;
  auto answer = ask_daemon(runtime_dir, request, target);
  if (answer && (verb == ControlVerb::kSuspend || renews(verb))) {
    const json told = json::parse(*answer, nullptr, false);
    if (const auto done = wait_for(runtime_dir, verb, told); !done)
      answer = std::unexpected(done.error());
  }
  if (answer) answer = session_text(verb, *answer);
  return print_answer(answer);
}

}  // namespace slate::tools
