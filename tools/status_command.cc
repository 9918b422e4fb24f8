#include "tools/status_command.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/control_client.h"

namespace slate::tools {
namespace {

using nlohmann::json;

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::uint64_t number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "-";
}

std::string head(const json& status) {
  std::string out = fmt::format("slated {} (pid {}), up {} s\n", text(status, "version"),
                                number(status, "pid"), number(status, "uptime_s"));
  const json device = status.value("device", json());
  if (device.is_object() && text(device, "name") != "-") {
    out += fmt::format("device    {}, {} free of {}\n", text(device, "name"),
                       human_bytes(number(device, "memory_free")),
                       human_bytes(number(device, "memory_total")));
  } else {
    out += "device    not open yet\n";
  }
  const json engine = status.value("engine", json::object());
  out += fmt::format("engine    pid {}, replaced {} times", number(engine, "pid"),
                     number(engine, "restarts"));
  if (text(engine, "last_fault") != "-") out += ", last fault " + text(engine, "last_fault");
  const json totals = status.value("totals", json::object());
  return out + fmt::format("\nin total  {} sessions, {} launches, {} faults\n",
                           number(totals, "sessions_served"), number(totals, "launches"),
                           number(totals, "faults"));
}

std::string row(const json& session) {
  return fmt::format(
      "{:>6} {:>8} {:>6} {:<20.20} {:<10} {:>6} {:>21} {:>9} {:>7} {:>9} {:>10} {:>10}\n",
      number(session, "id"), number(session, "pid"), number(session, "uid"),
      text(session, "program"), text(session, "state"), number(session, "since_s"),
      human_bytes(number(session, "memory_used")) + " / " +
          human_bytes(number(session, "memory_limit")),
      number(session, "launches"), number(session, "launches_running"), number(session, "copies"),
      human_bytes(number(session, "bytes_to_device")),
      human_bytes(number(session, "bytes_to_host")));
}

}  // namespace

Result<std::string> status_table(const std::string& json_text) {
  const json status = json::parse(json_text, nullptr, false);
  if (!status.is_object()) return fail(ErrorCode::kProtocol, "slated's status is not JSON");
  std::string out = head(status);
  const json sessions = status.value("sessions", json::array());
  if (!sessions.is_array() || sessions.empty()) return out + "no sessions\n";
  out += fmt::format(
      "\n{:>6} {:>8} {:>6} {:<20} {:<10} {:>6} {:>21} {:>9} {:>7} {:>9} {:>10} {:>10}\n", "ID",
      "PID", "UID", "PROGRAM", "STATE", "AGE s", "MEMORY / LIMIT", "LAUNCHES", "RUNNING", "COPIES",
      "TO DEVICE", "TO HOST");
  for (const json& session : sessions) out += row(session);
  return out;
}

int status_command(const std::string& runtime_dir, bool as_json) {
  auto answer = ask_status(runtime_dir);
  if (answer && !as_json) answer = status_table(*answer);
  if (!answer) {
    fmt::print(stderr, "slatectl: {}\n", answer.error().message);
    return 1;
  }
  fmt::print("{}{}", *answer, as_json ? "\n" : "");
  return 0;
}

}  // namespace slate::tools
