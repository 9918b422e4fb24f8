#include "tools/profile_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/kernel_name.h"
#include "tools/control_client.h"
#include "tools/json_fields.h"

namespace slate::tools {
namespace {

using nlohmann::json;

std::string plain_name(const json& kernel) {
  return std::string(short_kernel_name(demangle(text(kernel, "name"))));
}

std::string block_text(const json& kernel) {
  const auto block = kernel.find("block");
  if (block == kernel.end() || !block->is_array()) return "-";
  std::string out;
  for (const json& side : *block) {
    if (side.is_number_unsigned())
      out += fmt::format("{}{}", out.empty() ? "" : "x", side.get<std::uint64_t>());
  }
  return out;
}

std::string time_text(const json& kernel, const char* form) {
  const auto alone = kernel.find("alone");
  if (alone == kernel.end() || !alone->is_object() || !alone->contains(form)) return "-";
  const auto ms = real((*alone)[form], "ms");
  return ms ? fmt::format("{:.4g}", *ms) : "-";
}

/// A fraction, with a star where the administrator has set it.
std::string intensity_text(const json& kernel, const char* key, const char* set) {
  const auto value = real(kernel, key);
  return value ? fmt::format("{:.3f}{}", *value, flag(kernel, set) ? "*" : "") : "-";
}

std::string sms_text(const json& part) {
  const auto sms = number(part, "sms");
  if (sms == 0) return "none";
  const auto first = number(part, "first_sm");
  const auto blocks = number(part, "blocks_per_sm");
  return fmt::format("{}-{}{}{}", first, first + sms - 1,
                     blocks != 0 ? fmt::format(", {} blocks each", blocks) : "",
                     flag(part, "ahead") ? ", ahead" : "");
}

std::string kernel_row(const json& kernel) {
  return fmt::format(
      "{:<40.40} {:>10} {:>12} {:>10} {:>10} {:>8} {:>8} {:>5} {:>8} {:>8}\n", plain_name(kernel),
      block_text(kernel), number(kernel, "blocks"), time_text(kernel, "native"),
      time_text(kernel, "worker"), intensity_text(kernel, "compute", "compute_set"),
      intensity_text(kernel, "memory", "memory_set"), text(kernel, "class"),
      text(kernel, "best_form") + (flag(kernel, "form_set") ? "*" : ""), number(kernel, "samples"));
}

/// Speed over SMs, relative to the same form on all of them.
std::string scaling(const json& kernel) {
  std::string out;
  for (const json& part : list(kernel, "placed")) {
    const std::string form = text(part, "form");
    const double ms = real(part, "ms").value_or(0);
    std::string speed = "-";
    if (const auto alone = kernel.find("alone");
        alone != kernel.end() && alone->contains(form) && ms > 0) {
      if (const auto whole = real((*alone)[form], "ms")) speed = fmt::format("{:.2f}", *whole / ms);
    }
    out += fmt::format("  {:<7} {:>5} SMs ({})  {:.4g} ms, {} of alone, {} samples\n", form,
                       number(part, "sms"), sms_text(part), ms, speed, number(part, "samples"));
  }
  return out;
}

std::string group_text(const json& group, const std::map<std::uint64_t, std::string>& names) {
  std::string out =
      flag(group, "pinned")
          ? fmt::format("  {}, set by hand\n", text(group, "sharing"))
          : fmt::format("  {}, {:.2f} of one after the other, {} samples\n", text(group, "sharing"),
                        real(group, "makespan").value_or(0), number(group, "samples"));
  for (const json& member : list(group, "kernels")) {
    const auto name = names.find(number(member, "id"));
    out += fmt::format("    {:<40.40}", name != names.end() ? name->second : "-");
    if (member.contains("form")) out += " " + text(member, "form");
    if (member.contains("sms")) out += " on SMs " + sms_text(member);
    out += "\n";
  }
  return out;
}

std::string details(const json& kernel) {
  std::string out = fmt::format("{}\n  {}\n", plain_name(kernel), text(kernel, "name"));
  out += fmt::format("  blocks of {}, {} of them; code {:016x}\n", block_text(kernel),
                     number(kernel, "blocks"), number(kernel, "code"));
  for (const char* form : {"native", "worker", "slice"}) {
    const std::string ms = time_text(kernel, form);
    if (ms == "-") continue;
    out += fmt::format("  {:<7} alone {} ms, {} samples\n", form, ms,
                       number(kernel["alone"][form], "samples"));
  }
  out += fmt::format("  runs as {}{}, task of {} blocks\n", text(kernel, "best_form"),
                     flag(kernel, "form_set") ? " (set)" : "",
                     number(kernel, "task_size") != 0 ? std::to_string(number(kernel, "task_size"))
                                                      : "the usual number of");
  if (const std::string forms = text(kernel, "forms"); !forms.empty())
    out += fmt::format("  forms: {}\n", forms);
  out += fmt::format("  of the peaks: compute {}, memory {}; class {}\n",
                     intensity_text(kernel, "compute", "compute_set"),
                     intensity_text(kernel, "memory", "memory_set"), text(kernel, "class"));
  for (const char* amount : {"flops", "bytes", "instructions"}) {
    if (const auto value = real(kernel, amount))
      out += fmt::format("  {} a launch: {:.4g}\n", amount, *value);
  }
  return out + scaling(kernel);
}

Result<json> parse(const std::string& json_text) {
  json all = json::parse(json_text, nullptr, false);
  if (!all.is_object() || !all.contains("kernels"))
    return fail(ErrorCode::kProtocol, "slated's profile is not what it should be");
  return all;
}

/// `all` with the kernels that are meant, and the groups that they are in.
Result<json> select(json all, const std::string& kernel) {
  if (kernel.empty()) return all;
  json kernels = json::array();
  json groups = json::array();
  std::vector<std::uint64_t> ids;
  for (json& one : list(all, "kernels")) {
    const std::string name = text(one, "name");
    if (!selects(kernel, name, demangle(name))) continue;
    ids.push_back(number(one, "id"));
    kernels.push_back(std::move(one));
  }
  if (ids.empty()) return fail(ErrorCode::kInvalidValue, "the profile knows no kernel " + kernel);
  for (json& group : list(all, "groups")) {
    const auto members = list(group, "kernels");
    if (std::ranges::any_of(members, [&](const json& member) {
          return std::ranges::find(ids, number(member, "id")) != ids.end();
        })) {
      groups.push_back(std::move(group));
    }
  }
  all["kernels"] = std::move(kernels);
  all["groups"] = std::move(groups);
  return all;
}

std::map<std::uint64_t, std::string> names_of(const json& all) {
  std::map<std::uint64_t, std::string> names;
  const auto found = all.find("group_kernels");
  if (found == all.end() || !found->is_object()) return names;
  for (const auto& [id, name] : found->items()) {
    if (name.is_string())
      names[std::strtoull(id.c_str(), nullptr, 10)] =
          short_kernel_name(demangle(name.get_ref<const std::string&>()));
  }
  return names;
}

Result<std::string> changed_text(const Result<std::string>& answer) {
  if (!answer) return answer;
  const json parsed = json::parse(*answer, nullptr, false);
  if (!parsed.is_object()) return fail(ErrorCode::kProtocol, "slated's answer is not JSON");
  return fmt::format("{} rows changed\n", number(parsed, "changed"));
}

}  // namespace

Result<std::string> profile_table(const std::string& json_text) {
  const auto all = parse(json_text);
  if (!all) return std::unexpected(all.error());
  auto kernels = list(*all, "kernels");
  std::erase_if(kernels, [](const json& kernel) {
    return number(kernel, "samples") == 0 && !flag(kernel, "compute_set") &&
           !flag(kernel, "memory_set") && !flag(kernel, "form_set");
  });
  if (kernels.empty()) return "no kernel has been measured\n";
  std::string out = fmt::format(
      "{:<40} {:>10} {:>12} {:>10} {:>10} {:>8} {:>8} {:>5} {:>8} {:>8}\n", "KERNEL", "BLOCK",
      "BLOCKS", "NATIVE ms", "WORKER ms", "COMPUTE", "MEMORY", "CLASS", "FORM", "SAMPLES");
  for (const json& kernel : kernels) out += kernel_row(kernel);
  return out;
}

Result<std::string> profile_details(const std::string& json_text, const std::string& kernel) {
  const auto all = parse(json_text);
  if (!all) return std::unexpected(all.error());
  const auto selected = select(*all, kernel);
  if (!selected) return std::unexpected(selected.error());
  std::string out;
  for (const json& one : list(*selected, "kernels")) out += details(one);
  const auto groups = list(*selected, "groups");
  if (!groups.empty()) out += "together with others:\n";
  const auto names = names_of(*selected);
  for (const json& group : groups) out += group_text(group, names);
  return out;
}

Result<std::string> profile_rows(const std::string& json_text, const std::string& kernel) {
  const auto all = parse(json_text);
  if (!all) return std::unexpected(all.error());
  const auto selected = select(*all, kernel);
  if (!selected) return std::unexpected(selected.error());
  return selected->dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

int profile_show_command(const std::string& runtime_dir, const std::string& kernel, bool as_json) {
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kProfile;
  const auto answer = ask_daemon(runtime_dir, request);
  if (!answer) return print_answer(answer);
  if (as_json) return print_answer(profile_rows(*answer, kernel));
  return print_answer(kernel.empty() ? profile_table(*answer) : profile_details(*answer, kernel));
}

int profile_set_command(const std::string& runtime_dir, const ProfileChange& change) {
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kProfileSet;
  if (change.compute) request.fields |= ipc::kHasCompute;
  if (change.memory) request.fields |= ipc::kHasMemory;
  if (!change.form.empty()) request.fields |= ipc::kHasForm;
  if (request.fields == 0) {
    fmt::print(stderr, "slatectl: give --compute, --memory or --form\n");
    return 2;
  }
  request.compute = change.compute.value_or(0);
  request.memory = change.memory.value_or(0);
  // The numbers of scheduler::Form.
  request.form = change.form == "native" ? 0 : change.form == "worker" ? 1 : ipc::kAnyForm;
  return print_answer(changed_text(ask_daemon(runtime_dir, request, change.kernel)));
}

int profile_group_command(const std::string& runtime_dir, const GroupChange& change) {
  const int ways = (change.alone ? 1 : 0) + (change.together ? 1 : 0) + (change.automatic ? 1 : 0) +
                   (change.sms.empty() ? 0 : 1);
  if (ways != 1) {
    fmt::print(stderr, "slatectl: give one of --alone, --together, --sms and --auto\n");
    return 2;
  }
  const char* const sharing = change.alone       ? "alone"
                              : change.together  ? "together"
                              : change.automatic ? "auto"
                                                 : "placed";
  const json text = {{"kernels", change.kernels},
                     {"sharing", sharing},
                     {"sms", change.sms},
                     {"forms", change.forms}};
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kProfileGroup;
  const auto answer =
      ask_daemon(runtime_dir, request, text.dump(-1, ' ', false, json::error_handler_t::replace));
  return print_answer(answer ? Result<std::string>("") : answer);
}

int profile_forget_command(const std::string& runtime_dir, const std::string& kernel, bool all) {
  if (kernel.empty() != all) {
    fmt::print(stderr, "slatectl: name a kernel, or say --all\n");
    return 2;
  }
  ipc::ControlRequest request;
  request.verb = ipc::ControlVerb::kProfileForget;
  return print_answer(changed_text(ask_daemon(runtime_dir, request, kernel)));
}

}  // namespace slate::tools
