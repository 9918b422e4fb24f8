#include "daemon/supervisor/session_search.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "daemon/supervisor/user_rules.h"
#include "daemon/supervisor/whole_number.h"

namespace slate::daemon {

using nlohmann::json;

Result<std::vector<std::uint64_t>> find_sessions(const Registry& registry,
                                                 const std::string& target, std::uint32_t asker) {
  const auto number = whole_number<std::uint64_t>(target);
  bool others = false;  // by number; by its name a program of somebody else is not even seen
  const auto matching = [&](const auto& is_meant, bool tells) {
    std::vector<std::uint64_t> found;
    for (const auto& [id, record] : registry.sessions()) {
      if (!is_meant(record)) continue;
      if (record.uid == asker || is_administrator(asker)) {
        found.push_back(id);
      } else if (tells) {
        others = true;
      }
    }
    return found;
  };
  std::vector<std::uint64_t> found;
  if (number) {
    found = matching([&](const SessionRecord& each) { return each.id == *number; }, true);
    if (found.empty())
      found = matching([&](const SessionRecord& each) { return each.pid == *number; }, true);
  }
  if (found.empty())
    found = matching([&](const SessionRecord& each) { return each.program == target; }, false);
  if (!found.empty()) return found;
  if (others) return fail(ErrorCode::kPermission, fmt::format("{} is another user's", target));
  return fail(ErrorCode::kInvalidValue,
              fmt::format("there is no session, process or program {} of yours", target));
}

namespace {

Result<void> change_one(Registry& registry, ipc::ControlVerb verb, std::uint64_t id,
                        std::uint32_t asker) {
  switch (verb) {
    case ipc::ControlVerb::kSuspend:
      return registry.suspend(id);
    case ipc::ControlVerb::kResume:
      registry.resume(id);
      return {};
    default:
      registry.end(id, fmt::format("uid {} ended it with slatectl end", asker));
      return {};
  }
}

std::string_view name_of(ipc::ControlVerb verb) {
  if (verb == ipc::ControlVerb::kSuspend) return "suspended";
  return verb == ipc::ControlVerb::kResume ? "resumed" : "ended";
}

}  // namespace

Result<std::string> change_sessions(Registry& registry, ipc::ControlVerb verb,
                                    const std::string& target, std::uint32_t asker) {
  const auto found = find_sessions(registry, target, asker);
  if (!found) return std::unexpected(found.error());
  json sessions = json::array();
  for (const std::uint64_t id : *found) {
    const SessionRecord& record = registry.sessions().at(id);
    sessions.push_back(
        {{"id", id}, {"pid", record.pid}, {"uid", record.uid}, {"program", record.program}});
    log_info("session {} (uid {}, pid {}, {}) {} by uid {}, with slatectl", id, record.uid,
             record.pid, record.program, name_of(verb), asker);
    if (const auto done = change_one(registry, verb, id, asker); !done)
      return std::unexpected(done.error());
  }
  return json{{"sessions", sessions}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace slate::daemon
