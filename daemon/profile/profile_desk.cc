#include "daemon/profile/profile_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/kernel_name.h"
#include "scheduler/search.h"

namespace slate::daemon {
namespace {

using nlohmann::json;
using scheduler::Form;
using scheduler::form_name;
using scheduler::KernelId;
using scheduler::KernelProfile;
using scheduler::Machine;
using scheduler::Placement;
using scheduler::TimeEstimate;

constexpr std::uint64_t kMostSms = 1 << 16;
constexpr const char* kSharingNames[] = {"alone", "together", "placed"};
constexpr const char* kKindNames[] = {"show", "set", "forget", "pin", "unpin"};

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

std::optional<double> measured(double amount) {
  return amount >= 0 ? std::optional(amount) : std::nullopt;
}

json time_json(const TimeEstimate& time) {
  return {{"ms", time.ms}, {"samples", time.samples}};
}

json placement_json(const Placement& placement, const Machine& machine) {
  return {{"first_sm", placement.first * machine.sms_per_unit},
          {"sms", machine.sms(placement)},
          {"blocks_per_sm", placement.blocks_per_sm},
          {"ahead", placement.ahead}};
}

/// The class of Table I; null when an intensity that it takes is unknown.
json class_of(const std::optional<double>& compute, const std::optional<double>& memory,
              const scheduler::Settings& settings) {
  if (!memory) return {};
  if (*memory >= settings.high_memory) return "H_M";
  if (*memory >= settings.medium_memory) return "M_M";
  if (!compute) return {};
  if (*compute >= settings.high_compute) return "H_C";
  return *compute >= settings.medium_compute ? "M_C" : "L_C";
}

std::uint64_t samples_of(const KernelProfile& row) {
  std::uint64_t samples = 0;
  for (const TimeEstimate& time : row.alone) samples += time.samples;
  for (const auto& times : row.placed) {
    for (const auto& [placement, time] : times) samples += time.samples;
  }
  return samples;
}

json kernel_json(KernelId id, const scheduler::ProfileTable& table, const Machine& machine,
                 const scheduler::Settings& settings) {
  const KernelProfile& row = table.kernel(id);
  json alone = json::object();
  json placed = json::array();
  for (std::size_t form = 0; form < row.alone.size(); ++form) {
    if (row.alone[form].known())
      alone[form_name(static_cast<Form>(form))] = time_json(row.alone[form]);
    for (const auto& [placement, time] : row.placed[form]) {
      json one = placement_json(placement, machine);
      one["form"] = form_name(static_cast<Form>(form));
      one.update(time_json(time));
      placed.push_back(std::move(one));
    }
  }
  json tasks = json::array();
  for (const auto& [size, time] : row.tasks) {
    json one = time_json(time);
    one["size"] = size;
    tasks.push_back(std::move(one));
  }
  const auto compute = table.compute_intensity(id, machine);
  const auto memory = table.memory_intensity(id, machine);
  return {{"id", id},
          {"name", row.key.name},
          {"code", row.key.code},
          {"block", row.key.block},
          {"grid_bucket", row.key.grid_bucket},
          {"blocks", row.blocks},
          {"alone", alone},
          {"placed", placed},
          {"best_form", form_name(row.form_override.value_or(row.best_form()))},
          {"forms", row.forms},
          {"task_size", row.task_size},
          {"tasks", tasks},
          {"flops", or_null(measured(row.flops))},
          {"bytes", or_null(measured(row.bytes))},
          {"instructions", or_null(measured(row.instructions))},
          {"compute", or_null(compute)},
          {"memory", or_null(memory)},
          {"compute_set", row.compute_override.has_value()},
          {"memory_set", row.memory_override.has_value()},
          {"form_set", row.form_override.has_value()},
          {"class", class_of(compute, memory, settings)},
          {"samples", samples_of(row)}};
}

json group_json(const scheduler::GroupProfile& group, const Machine& machine) {
  json members = json::array();
  for (std::size_t i = 0; i < group.kernels.size(); ++i) {
    json member = {{"id", group.kernels[i]}};
    if (i < group.placements.size()) member.update(placement_json(group.placements[i], machine));
    if (i < group.forms.size()) member["form"] = form_name(group.forms[i]);
    members.push_back(std::move(member));
  }
  return {{"kernels", members},
          {"sharing", kSharingNames[static_cast<std::size_t>(group.sharing)]},
          {"makespan", group.makespan},
          {"samples", group.samples},
          {"pinned", group.pinned}};
}

std::string show(const std::vector<KernelId>& rows, const scheduler::ProfileTable& table,
                 const Machine& machine, const scheduler::Settings& settings) {
  json kernels = json::array();
  for (const KernelId id : rows) kernels.push_back(kernel_json(id, table, machine, settings));
  json groups = json::array();
  json others = json::object();  // names of kernels that only groups mention
  for (const auto& [ids, group] : table.groups()) {
    const bool concerns =
        std::ranges::any_of(ids, [&](KernelId id) { return std::ranges::binary_search(rows, id); });
    if (!concerns) continue;
    groups.push_back(group_json(group, machine));
    for (const KernelId id : ids) others[std::to_string(id)] = table.kernel(id).key.name;
  }
  const json all = {{"sm_count", machine.sm_count},
                    {"kernels", kernels},
                    {"groups", groups},
                    {"group_kernels", others}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<KernelId> select(const std::string& kernel, const scheduler::ProfileTable& table) {
  std::vector<KernelId> rows;
  for (KernelId id = 0; id < table.size(); ++id) {
    const std::string& name = table.kernel(id).key.name;
    if (kernel.empty() || selects(kernel, name, demangle(name))) rows.push_back(id);
  }
  return rows;
}

/// What an override becomes: none for a negative number.
std::optional<double> override_of(double value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

void set(const ProfileRequest& request, KernelProfile& row) {
  if (request.form) {
    row.form_override =
        *request.form < 0 ? std::nullopt : std::optional(static_cast<Form>(*request.form));
  }
  if (request.compute) row.compute_override = override_of(*request.compute);
  if (request.memory) row.memory_override = override_of(*request.memory);
}

/// The family that a name of a group means.
Result<KernelId> family_of(const std::string& kernel, const scheduler::ProfileTable& table) {
  if (kernel.starts_with('#')) {
    KernelId id = 0;
    const auto [end, error] = std::from_chars(kernel.data() + 1, kernel.data() + kernel.size(), id);
    if (error != std::errc() || end != kernel.data() + kernel.size() || id >= table.size())
      return fail(ErrorCode::kInvalidValue, "the profile has no row " + kernel);
    return table.family(id);
  }
  std::vector<KernelId> families;
  for (const KernelId id : select(kernel, table)) families.push_back(table.family(id));
  std::ranges::sort(families);
  families.erase(std::ranges::unique(families).begin(), families.end());
  if (families.empty())
    return fail(ErrorCode::kInvalidValue, "the profile knows no kernel " + kernel);
  if (families.size() == 1) return families.front();
  std::string which;
  for (const KernelId id : families) which += fmt::format(" #{}", id);
  return fail(ErrorCode::kInvalidValue, kernel + " may be any of" + which);
}

/// The first `sms` SMs from unit `first` on, as whole units.
Result<Placement> place(std::uint32_t first, std::uint32_t sms, const Machine& machine) {
  Placement placement{.first = first};
  for (placement.count = 1; placement.end() <= machine.units; ++placement.count) {
    if (machine.sms(placement) == sms) return placement;
  }
  return fail(
      ErrorCode::kInvalidValue,
      fmt::format("{} SMs cannot be had from SM {} on: the device has {}, in parts of {}", sms,
                  first * machine.sms_per_unit, machine.sm_count, machine.sms_per_unit));
}

Result<scheduler::GroupProfile> group_of(const ProfileRequest& request,
                                         const scheduler::ProfileTable& table,
                                         const Machine& machine) {
  scheduler::GroupProfile group;
  group.sharing = request.sharing;
  group.pinned = true;
  group.makespan = 1;  // not measured
  for (const std::string& kernel : request.group) {
    const auto family = family_of(kernel, table);
    if (!family) return std::unexpected(family.error());
    group.kernels.push_back(*family);
  }
  group.forms = request.forms;
  group.forms.resize(group.kernels.size(), Form::kNative);
  std::uint32_t first = 0;
  for (const std::uint32_t sms : request.sms) {
    const auto placement = place(first, sms, machine);
    if (!placement) return std::unexpected(placement.error());
    group.placements.push_back(*placement);
    first = placement->end();
  }
  return table.ordered(group);
}

Result<void> change_group(const ProfileRequest& request, scheduler::ProfileTable& table,
                          const Machine& machine) {
  auto group = group_of(request, table, machine);
  if (!group) return std::unexpected(group.error());
  if (request.kind == ProfileRequest::Kind::kUnpin) {
    table.forget_group(group->kernels);
    return {};
  }
  table.set_group(std::move(*group));
  table.edited();
  return {};
}

/// Numbers and names as they must be; members as many as there are kernels.
Result<void> check_group(const ProfileRequest& request) {
  const std::size_t kernels = request.group.size();
  if (kernels < 2 || kernels > scheduler::kMostMembers)
    return fail(ErrorCode::kInvalidValue, "a group is of 2 to 8 kernels");
  if (!request.forms.empty() && request.forms.size() != kernels)
    return fail(ErrorCode::kInvalidValue, "give a form for each kernel, or none");
  const bool placed = request.sharing == scheduler::Sharing::kPlaced;
  if (request.sms.size() != (placed ? kernels : 0))
    return fail(ErrorCode::kInvalidValue, "give a number of SMs for each kernel that is placed");
  return {};
}

bool in_range(const std::optional<double>& intensity) {
  return !intensity || *intensity <= 1;  // not for a NaN
}

}  // namespace

std::string profile_request_text(const ProfileRequest& request) {
  json forms = json::array();
  for (const Form form : request.forms) forms.push_back(form_name(form));
  const json text = {{"kernels", request.group},
                     {"sharing", kSharingNames[static_cast<std::size_t>(request.sharing)]},
                     {"sms", request.sms},
                     {"forms", forms},
                     {"kind", kKindNames[static_cast<std::size_t>(request.kind)]},
                     {"kernel", request.kernel},
                     {"compute", or_null(request.compute)},
                     {"memory", or_null(request.memory)},
                     {"form", or_null(request.form)}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<ProfileRequest> parse_profile_request(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  const auto wrong = [] { return fail(ErrorCode::kProtocol, "a profile request makes no sense"); };
  if (!parsed.is_object()) return wrong();
  ProfileRequest request;
  if (parsed.contains("kernels") && !parsed["kernels"].empty()) {
    auto group = parse_group_request(text);
    if (!group) return wrong();
    request = std::move(*group);
  }
  const json kind = parsed.contains("kind") ? parsed["kind"] : json();
  const auto* const found = std::ranges::find(kKindNames, kind);
  if (found == std::end(kKindNames)) return wrong();
  request.kind = static_cast<ProfileRequest::Kind>(found - std::begin(kKindNames));
  if (parsed.contains("kernel") && parsed["kernel"].is_string()) request.kernel = parsed["kernel"];
  for (const auto& [key, field] : {std::pair{"compute", &ProfileRequest::compute},
                                   std::pair{"memory", &ProfileRequest::memory}}) {
    if (parsed.contains(key) && parsed[key].is_number()) request.*field = parsed[key];
  }
  if (parsed.contains("form") && parsed["form"].is_number_integer()) request.form = parsed["form"];
  return request;
}

Result<ProfileRequest> parse_group_request(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  const auto wrong = [](const char* what) {
    return fail(ErrorCode::kInvalidValue, fmt::format("the request has no sensible {}", what));
  };
  if (!parsed.is_object()) return wrong("text");
  const auto list = [&](const char* key) { return parsed.value(key, json::array()); };
  ProfileRequest request;
  request.kind = ProfileRequest::Kind::kPin;
  for (const json& kernel : list("kernels")) {
    if (!kernel.is_string()) return wrong("kernels");
    request.group.push_back(kernel);
  }
  for (const json& sms : list("sms")) {
    if (!sms.is_number_unsigned() || sms.get<std::uint64_t>() > kMostSms) return wrong("sms");
    request.sms.push_back(sms);
  }
  for (const json& form : list("forms")) {
    if (form != "native" && form != "worker") return wrong("forms");
    request.forms.push_back(form == "native" ? Form::kNative : Form::kWorker);
  }
  const json sharing = parsed.contains("sharing") ? parsed["sharing"] : json();
  if (sharing == "auto") {
    request.kind = ProfileRequest::Kind::kUnpin;
  } else {
    const auto* const found = std::ranges::find(kSharingNames, sharing);
    if (found == std::end(kSharingNames)) return wrong("sharing");
    request.sharing = static_cast<scheduler::Sharing>(found - std::begin(kSharingNames));
  }
  if (const auto good = check_group(request); !good) return std::unexpected(good.error());
  return request;
}

Result<std::string> answer_profile_request(const ProfileRequest& request,
                                           scheduler::ProfileTable& table, const Machine& machine,
                                           const scheduler::Settings& settings) {
  if (!request.group.empty()) {
    const auto done = change_group(request, table, machine);
    if (!done) return std::unexpected(done.error());
    return json{{"changed", 1}}.dump();
  }
  const std::vector<KernelId> rows = select(request.kernel, table);
  if (rows.empty() && !request.kernel.empty())
    return fail(ErrorCode::kInvalidValue, "the profile knows no kernel " + request.kernel);
  if (request.kind == ProfileRequest::Kind::kShow) return show(rows, table, machine, settings);
  if (request.kind == ProfileRequest::Kind::kForget) {
    if (request.kernel.empty()) table.clear();
    for (const KernelId id : rows) table.forget(id);
  } else {
    if (request.kernel.empty()) return fail(ErrorCode::kInvalidValue, "no kernel was named");
    if (!in_range(request.compute) || !in_range(request.memory))
      return fail(ErrorCode::kInvalidValue, "intensities are fractions of the peak, 0 to 1");
    if (request.form && *request.form > static_cast<int>(Form::kWorker))
      return fail(ErrorCode::kInvalidValue, "the form is native or worker");
    for (const KernelId id : rows) set(request, table.kernel(id));
    table.edited();
  }
  return json{{"changed", rows.size()}}.dump();
}

}  // namespace slate::daemon
