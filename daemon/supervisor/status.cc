#include "daemon/supervisor/status.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace slate::daemon {
namespace {

using nlohmann::json;

std::int64_t seconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
}

const char* state_name(const SessionRecord& record) {
  if (record.is_suspended)
    return record.state == SessionRecord::State::kServing ? "leaving" : "suspended";
  switch (record.state) {
    case SessionRecord::State::kWaiting:
      return "waiting";
    case SessionRecord::State::kReady:
      return "connecting";
    case SessionRecord::State::kServing:
      return "serving";
  }
  return "unknown";
}

/// What the supervisor knows; the engine's part is laid over it.
json session_json(const SessionRecord& record) {
  return {{"id", record.id},
          {"pid", record.pid},
          {"uid", record.uid},
          {"program", record.program},
          {"since_s", seconds_since(record.since)},
          {"state", state_name(record)},
          {"domain", domain_name(record.domain)},
          {"weight", record.standing.now.weight},
          {"priority", record.standing.now.priority},
          {"memory_used", 0},
          {"memory_limit", 0},
          {"pinned_used", 0},
          {"code_memory", 0},
          {"launches", 0},
          {"launches_running", 0},
          {"copies", 0},
          {"bytes_to_device", 0},
          {"bytes_to_host", 0},
          {"streams", 0},
          {"modules", 0}};
}

void add_to_user(json& users, const SessionRecord& record, const json& session) {
  auto user = std::ranges::find_if(
      users, [&](const json& each) { return each["uid"].get<std::uint32_t>() == record.uid; });
  if (user == users.end()) {
    users.push_back({{"uid", record.uid}, {"weight", record.user.weight}, {"sessions", 0}});
    user = std::prev(users.end());
  }
  (*user)["sessions"] = (*user)["sessions"].get<std::uint64_t>() + 1;
  for (const char* const sum : {"memory_used", "pinned_used", "code_memory", "launches"})
    (*user)[sum] = user->value(sum, 0ull) + session.value(sum, 0ull);
}

json device_json(const StatusFacts& facts, const json& report) {
  json device = {{"name", nullptr},        {"simulated", nullptr},   {"memory_total", nullptr},
                 {"memory_free", nullptr}, {"peak_gflops", nullptr}, {"peak_gbytes", nullptr}};
  if (facts.device == nullptr) return device;
  device["name"] = facts.device->name;
  device["simulated"] = facts.device->is_simulated != 0;
  device["memory_total"] = facts.device->total_memory;
  device.update(report.value("peaks", json::object()));
  if (report.contains("memory_free")) device["memory_free"] = report["memory_free"];
  return device;
}

/// Adds the counts of another engine, and what only that one has.
void add_counts(json& sum, const json& other) {
  if (sum.is_number_integer() && other.is_number_integer()) {
    sum = sum.get<std::int64_t>() + other.get<std::int64_t>();
  } else if (sum.is_null()) {
    sum = other;
  } else if (sum.is_object() && other.is_object()) {
    for (const auto& [key, value] : other.items()) add_counts(sum[key], value);
  }
}

/// The engines' reports as one: sessions of all, sums of counts. Of the rest the first one's word
/// counts.
json joined(const std::vector<std::string>& reports) {
  json all = json::object();
  for (const std::string& text : reports) {
    json report = json::parse(text, nullptr, false);
    if (!report.is_object()) continue;
    if (all.empty()) {
      all = std::move(report);
      continue;
    }
    for (const json& session : report.value("sessions", json::array()))
      all["sessions"].push_back(session);
    for (const char* const counts : {"faults", "cache", "forms", "fence", "swap", "unsupported"}) {
      if (report.contains(counts)) add_counts(all[counts], report[counts]);
    }
  }
  return all;
}

json engines_json(const StatusFacts& facts, const Registry& registry) {
  json engines = json::array();
  for (const StatusFacts::Engine& each : facts.engines) {
    const bool is_others = each.domain.kind == Domain::Kind::kUser && facts.only_of &&
                           each.domain.number != *facts.only_of;
    if (is_others) continue;
    const auto sessions = std::ranges::count_if(registry.sessions(), [&](const auto& session) {
      return session.second.domain == each.domain;
    });
    engines.push_back({{"domain", domain_name(each.domain)},
                       {"pid", each.pid},
                       {"sessions", sessions},
                       {"time", each.time ? json(each.time->part_at(Clock::now())) : json()},
                       {"held", each.time && each.time->holds}});
  }
  return engines;
}

/// Of the sessions that it waits for, only the user's own are named.
void hide_others(json& session, const Registry& registry, std::uint32_t uid) {
  if (!session.contains("waits_for")) return;
  json own = json::array();
  for (const json& each : session["waits_for"]) {
    const auto found = registry.sessions().find(each.get<std::uint64_t>());
    if (found != registry.sessions().end() && found->second.uid == uid) own.push_back(each);
  }
  session["waits_for"] = std::move(own);
}

}  // namespace

std::string status_text(const StatusFacts& facts, const Registry& registry,
                        const std::vector<std::string>& reports) {
  const json report = joined(reports);
  std::map<std::uint64_t, json> parts;
  for (const json& part : report.value("sessions", json::array()))
    parts[part.value("id", 0ull)] = part;
  json sessions = json::array(), users = json::array();
  std::uint64_t launches = facts.past_launches;
  for (const auto& [id, record] : registry.sessions()) {
    json session = session_json(record);
    if (const auto part = parts.find(id); part != parts.end()) session.update(part->second);
    if (record.is_suspended) session["state"] = state_name(record);  // whatever its engine says
    launches += session.value("launches", 0ull);
    if (facts.only_of) {
      if (record.uid != *facts.only_of) continue;
      hide_others(session, registry, *facts.only_of);
    }
    add_to_user(users, record, session);
    sessions.push_back(std::move(session));
  }
  json engine = {
      {"pid", nullptr},         {"spares", facts.spares},      {"spare_bytes", nullptr},
      {"renews", facts.renews}, {"renewed", facts.is_renewed}, {"restarts", facts.restarts},
      {"last_fault", nullptr}};
  if (facts.engine_pid != 0) engine["pid"] = facts.engine_pid;
  if (facts.spare_bytes != 0) engine["spare_bytes"] = facts.spare_bytes;
  if (!facts.last_fault.empty() && !facts.only_of) engine["last_fault"] = facts.last_fault;
  json barred = json::array();
  for (const Blame::Barred& each : facts.barred) {
    if (facts.only_of && each.uid != *facts.only_of) continue;
    barred.push_back({{"uid", each.uid}, {"left_s", each.left.count()}, {"reason", each.last}});
  }
  const json cache = report.value("cache", json());
  const json forms = report.value("forms", json());
  const json unsupported = report.value("unsupported", json::object());
  const json policy = report.value("policy", json());
  const json arrangement = facts.only_of ? json() : report.value("arrangement", json());
  const json status = {{"version", facts.version},
                       {"pid", getpid()},
                       {"uptime_s", seconds_since(facts.started)},
                       {"upgrades", facts.upgrades},
                       {"device", device_json(facts, report)},
                       {"engine", engine},
                       {"engines", engines_json(facts, registry)},
                       {"cache", cache},
                       {"forms", forms},
                       {"fence", report.value("fence", json())},
                       {"swap", report.value("swap", json())},
                       {"unsupported", unsupported},
                       {"policy", policy},
                       {"arrangement", arrangement},
                       {"users", users},
                       {"barred", barred},
                       {"sessions", sessions},
                       {"totals",
                        {{"sessions_served", registry.served()},
                         {"launches", launches},
                         {"faults", facts.past_faults + report.value("faults", 0ull)}}}};
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace slate::daemon
