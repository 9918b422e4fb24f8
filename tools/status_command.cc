#include "tools/status_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/kernel_name.h"
#include "tools/control_client.h"
#include "tools/json_fields.h"

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

/// The functions that programs missed, with how often they were called; empty when there are none.
std::string unsupported_line(const json& status) {
  const json calls = status.value("unsupported", json::object());
  if (!calls.is_object() || calls.empty()) return {};
  std::string line;
  for (const auto& [name, count] : calls.items()) {
    if (!count.is_number()) continue;
    line +=
        fmt::format("{}{} ({} calls)", line.empty() ? "" : ", ", name, number(calls, name.c_str()));
  }
  return "\nmissing   " + line;
}

std::string peaks_line(const json& device) {
  const auto peak = [&](const char* key) {
    const auto found = device.find(key);
    return found != device.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  // No exponents: 67'000 GFLOP/s, and 0.5 of a simulated one.
  const auto plain = [](double value) {
    return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
  };
  const double gflops = peak("peak_gflops"), gbytes = peak("peak_gbytes");
  if (gflops <= 0 && gbytes <= 0) return {};
  return fmt::format("peaks     {} GFLOP/s, {} GB/s\n", plain(gflops), plain(gbytes));
}

/// Nothing where the host starts all workers, as it does unless it is configured otherwise.
std::string dispatch_line(const json& forms) {
  if (!forms.is_object() || text(forms, "dispatch") != "device") return {};
  return fmt::format("\ndispatch  device, {} of {} launches as workers",
                     number(forms, "dispatched"), number(forms, "worker"));
}

/// Nothing while no kernel has to be fenced.
std::string fence_line(const json& fence) {
  if (!fence.is_object() || !fence.value("on", false)) return {};
  return fmt::format(
      "\nfence     on, {} kernels behind it, {} without; {} of {} launches in bounded copies",
      number(fence, "kernels"), number(fence, "unfenced"), number(fence, "bounded"),
      number(fence, "launches"));
}

/// Nothing without a swap.
std::string swap_line(const json& swap) {
  if (!swap.is_object()) return {};
  return fmt::format(
      "\nswap      {} of {} on the device, {} of {} on the host, moved {} out, {} in",
      human_bytes(number(swap, "used")), human_bytes(number(swap, "capacity")),
      human_bytes(number(swap, "host_used")), human_bytes(number(swap, "host_bytes")),
      human_bytes(number(swap, "moved_out")), human_bytes(number(swap, "moved_in")));
}

std::string head(const json& status) {
  std::string out = fmt::format("slated {} (pid {}), up {} s\n", text(status, "version"),
                                number(status, "pid"), number(status, "uptime_s"));
  const json device = status.value("device", json());
  if (device.is_object() && text(device, "name") != "-") {
    out += fmt::format("device    {}, {} free of {}\n", text(device, "name"),
                       human_bytes(number(device, "memory_free")),
                       human_bytes(number(device, "memory_total")));
    out += peaks_line(device);
  } else {
    out += "device    not open yet\n";
  }
  const json engine = status.value("engine", json::object());
  out += fmt::format("engine    pid {}, replaced {} times", number(engine, "pid"),
                     number(engine, "restarts"));
  if (const auto spares = numbers(engine, "spares"); !spares.empty()) {
    out += fmt::format(", spare pid {}", fmt::join(spares, " and "));
    if (const auto bytes = number(engine, "spare_bytes"); bytes != 0)
      out += fmt::format(" with {}", human_bytes(bytes));
  }
  if (text(engine, "last_fault") != "-") out += ", last fault " + text(engine, "last_fault");
  if (text(status, "policy") != "-") out += "\npolicy    " + text(status, "policy");
  if (text(status, "arrangement") != "-") out += ", " + text(status, "arrangement");
  out += dispatch_line(status.value("forms", json()));
  out += fence_line(status.value("fence", json()));
  out += swap_line(status.value("swap", json()));
  for (const json& barred : list(status, "barred")) {
    out += fmt::format("\nbarred    uid {} for {} s: {}", number(barred, "uid"),
                       number(barred, "left_s"), text(barred, "reason"));
  }
  const json totals = status.value("totals", json::object());
  out += unsupported_line(status);
  return out + fmt::format("\nin total  {} sessions, {} launches, {} faults\n",
                           number(totals, "sessions_served"), number(totals, "launches"),
                           number(totals, "faults"));
}

std::string real_text(const json& session, const char* key) {
  const auto value = real(session, key);
  return value ? fmt::format("{:g}", *value) : "-";
}

std::string session_row(const json& session) {
  return fmt::format(
      "{:>6} {:>8} {:>6} {:<20.20} {:<10} {:>6} {:>6} {:>4} {:>21} {:>9} {:>7} {:>9} {:>10} "
      "{:>10}\n",
      number(session, "id"), number(session, "pid"), number(session, "uid"),
      text(session, "program"), text(session, "state"), number(session, "since_s"),
      real_text(session, "weight"), real_text(session, "priority"),
      human_bytes(number(session, "memory_used")) + " / " +
          human_bytes(number(session, "memory_limit")),
      number(session, "launches"), number(session, "launches_running"), number(session, "copies"),
      human_bytes(number(session, "bytes_to_device")),
      human_bytes(number(session, "bytes_to_host")));
}

/// What runs now; nothing for a session that runs nothing, or a slated that does not say.
std::string running_row(const json& session) {
  if (text(session, "kernel") == "-") return {};
  const auto done = real(session, "blocks_done");
  const auto blocks = number(session, "blocks");
  std::string progress = "-";
  if (blocks != 0) {
    progress = done ? fmt::format("{:.0f} of {} ({:.0f} %)", *done, blocks,
                                  100 * *done / static_cast<double>(blocks))
                    : fmt::format("{}", blocks);
  }
  return fmt::format("{:>6} {:<48.48} {:<7} {:>4} {:>30}\n", number(session, "id"),
                     short_kernel_name(demangle(text(session, "kernel"))), text(session, "form"),
                     number(session, "sms"), progress);
}

/// Where the memory of the session is; nothing where all of it is on the device.
std::string memory_row(const json& session) {
  const bool waits = flag(session, "waits_for_memory");
  if (number(session, "swapped") == 0 && !waits) return {};
  std::string whom;
  if (const auto found = session.find("waits_for"); found != session.end() && found->is_array()) {
    for (const json& each : *found) {
      if (each.is_number_unsigned())
        whom += fmt::format("{}{}", whom.empty() ? "" : ",", each.get<std::uint64_t>());
    }
  }
  if (whom.empty()) whom = waits ? "yes" : "no";
  return fmt::format("{:>6} {:<20.20} {:>12} {:>12} {:>5} {:>9}\n", number(session, "id"),
                     text(session, "program"), human_bytes(number(session, "resident")),
                     human_bytes(number(session, "swapped")), text(session, "moves"), whom);
}

}  // namespace

Result<std::string> status_table(const std::string& json_text) {
  const json status = json::parse(json_text, nullptr, false);
  if (!status.is_object()) return fail(ErrorCode::kProtocol, "slated's status is not JSON");
  std::string out = head(status);
  const json sessions = status.value("sessions", json::array());
  if (!sessions.is_array() || sessions.empty()) return out + "no sessions\n";
  out += fmt::format(
      "\n{:>6} {:>8} {:>6} {:<20} {:<10} {:>6} {:>6} {:>4} {:>21} {:>9} {:>7} {:>9} {:>10} "
      "{:>10}\n",
      "ID", "PID", "UID", "PROGRAM", "STATE", "AGE s", "WEIGHT", "PRIO", "MEMORY / LIMIT",
      "LAUNCHES", "RUNNING", "COPIES", "TO DEVICE", "TO HOST");
  std::string running, swapped;
  for (const json& session : list(status, "sessions")) {
    out += session_row(session);
    running += running_row(session);
    swapped += memory_row(session);
  }
  if (!running.empty()) {
    out += fmt::format("\n{:>6} {:<48} {:<7} {:>4} {:>30}\n", "ID", "KERNEL", "FORM", "SMs",
                       "BLOCKS DONE") +
           running;
  }
  if (!swapped.empty()) {
    out += fmt::format("\n{:>6} {:<20} {:>12} {:>12} {:>5} {:>9}\n", "ID", "PROGRAM", "ON DEVICE",
                       "ON HOST", "MOVES", "WAITS FOR") +
           swapped;
  }
  return out;
}

int status_command(const std::string& runtime_dir, bool as_json) {
  auto answer = ask_status(runtime_dir);
  if (answer && !as_json) answer = status_table(*answer);
  if (answer && as_json) *answer += '\n';
  return print_answer(answer);
}

}  // namespace slate::tools
