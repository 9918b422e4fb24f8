#include "daemon/supervisor/settings_desk.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/supervisor/session_search.h"

namespace slate::daemon {
namespace {

using nlohmann::json;

AskedSettings asked_in(const ipc::ControlRequest& request) {
  AskedSettings asked;
  if ((request.fields & ipc::kHasWeight) != 0) asked.weight = request.weight;
  if ((request.fields & ipc::kHasPriority) != 0) asked.priority = request.priority;
  return asked;
}

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

std::string answer(const json& sessions, const json& kept) {
  const json all = {{"sessions", sessions}, {"kept", kept}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Result<std::string> SettingsDesk::change(const ipc::ControlRequest& request,
                                         const std::string& text, std::uint32_t asker) {
  const AskedSettings asked = asked_in(request);
  if (request.verb == ipc::ControlVerb::kSetSession) {
    const auto sessions = find_sessions(registry_, text, asker);
    if (!sessions) return std::unexpected(sessions.error());
    const auto changes = plan(*sessions, asked, asker);
    if (!changes) return std::unexpected(changes.error());
    return carry_out(*changes, "null");
  }
  // As the names of sessions' programs are kept, so that they can meet.
  const std::string program =
      display_name(text.data(), std::min(text.size(), sizeof(ipc::Hello::program) - 1));
  if (program.empty()) return fail(ErrorCode::kInvalidValue, "no program was named");
  const std::uint32_t uid = (request.fields & ipc::kHasUid) != 0 ? request.uid : asker;
  if (uid != asker && !is_administrator(asker))
    return fail(ErrorCode::kPermission, "programs of other users are the administrator's");
  if (request.verb == ipc::ControlVerb::kForgetProgram) return forget_program(program, uid, asker);
  return set_program(program, uid, asked, asker);
}

Result<SettingsDesk::Changes> SettingsDesk::plan(const std::vector<std::uint64_t>& sessions,
                                                 const AskedSettings& asked,
                                                 std::uint32_t asker) const {
  Changes changes;
  for (const std::uint64_t id : sessions) {
    const auto after = changed(registry_.sessions().at(id).standing, asked, asker);
    if (!after) return std::unexpected(after.error());
    changes.emplace_back(id, *after);
  }
  return changes;
}

std::string SettingsDesk::carry_out(const Changes& changes, const std::string& kept) {
  json sessions = json::array();
  for (const auto& [id, standing] : changes) {
    registry_.set(id, standing);
    const SessionRecord& record = registry_.sessions().at(id);
    sessions.push_back({{"id", id},
                        {"pid", record.pid},
                        {"program", record.program},
                        {"weight", standing.now.weight},
                        {"priority", standing.now.priority}});
  }
  return answer(sessions, json::parse(kept));
}

Result<std::string> SettingsDesk::set_program(const std::string& program, std::uint32_t uid,
                                              const AskedSettings& asked, std::uint32_t asker) {
  KeptSettings kept = programs_.find(program, uid).value_or(KeptSettings{});
  const bool by_administrator = is_administrator(asker);
  if (kept.by_administrator && !by_administrator)
    return fail(ErrorCode::kPermission, "the administrator has set this program");
  const Standing limits{{}, most_of(rules_, program, uid)};
  if (const auto allowed = changed(limits, asked, asker); !allowed)
    return std::unexpected(allowed.error());
  std::vector<std::uint64_t> alive;
  for (const auto& [id, record] : registry_.sessions()) {
    if (record.program == program && record.uid == uid) alive.push_back(id);
  }
  const auto changes = plan(alive, asked, asker);
  if (!changes) return std::unexpected(changes.error());
  if (asked.weight) kept.weight = asked.weight;
  if (asked.priority) kept.priority = asked.priority;
  kept.by_administrator = by_administrator;
  if (const auto done = programs_.keep(program, uid, kept); !done)
    return std::unexpected(done.error());
  const json text = {{"program", program},
                     {"uid", uid},
                     {"weight", or_null(kept.weight)},
                     {"priority", or_null(kept.priority)}};
  return carry_out(*changes, text.dump());
}

Result<std::string> SettingsDesk::forget_program(const std::string& program, std::uint32_t uid,
                                                 std::uint32_t asker) {
  const auto kept = programs_.find(program, uid);
  if (!kept) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("nothing is kept for {} of uid {}", program, uid));
  }
  if (kept->by_administrator && !is_administrator(asker))
    return fail(ErrorCode::kPermission, "the administrator has set this program");
  if (const auto done = programs_.forget(program, uid); !done) return std::unexpected(done.error());
  return answer(json::array(), nullptr);
}

}  // namespace slate::daemon
