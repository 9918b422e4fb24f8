// How made forms are kept: CBOR, with the code as it is.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "daemon/dispatch/kernel_forms.h"

namespace slate::daemon {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 2;

Json to_json(const injector::EntryAnalysis& analysis) {
  return {{"worker", analysis.worker.why_not},
          {"slice", analysis.slice.why_not},
          {"profile", analysis.profile.why_not},
          {"uncounted", analysis.uncounted},
          {"drains", analysis.drains},
          {"late_exits", analysis.late_exits},
          {"separates_blocks", analysis.separates_blocks},
          {"needs_whole_rows", analysis.needs_whole_rows},
          {"needs_whole_warps", analysis.needs_whole_warps},
          {"independent_blocks", analysis.independent_blocks},
          {"copies_asynchronously", analysis.copies_asynchronously},
          {"calls", analysis.calls},
          {"functions_read_block_index", analysis.functions_read_block_index},
          {"barriers", analysis.barriers},
          {"warp_wide", analysis.warp_wide},
          {"static_shared_bytes", analysis.static_shared_bytes},
          {"parameter_bytes", analysis.parameter_bytes}};
}

injector::EntryAnalysis analysis_of(const Json& json) {
  injector::EntryAnalysis analysis;
  json.at("worker").get_to(analysis.worker.why_not);
  json.at("slice").get_to(analysis.slice.why_not);
  json.at("profile").get_to(analysis.profile.why_not);
  json.at("uncounted").get_to(analysis.uncounted);
  json.at("drains").get_to(analysis.drains);
  json.at("late_exits").get_to(analysis.late_exits);
  json.at("separates_blocks").get_to(analysis.separates_blocks);
  json.at("needs_whole_rows").get_to(analysis.needs_whole_rows);
  json.at("needs_whole_warps").get_to(analysis.needs_whole_warps);
  json.at("independent_blocks").get_to(analysis.independent_blocks);
  json.at("copies_asynchronously").get_to(analysis.copies_asynchronously);
  json.at("calls").get_to(analysis.calls);
  json.at("functions_read_block_index").get_to(analysis.functions_read_block_index);
  json.at("barriers").get_to(analysis.barriers);
  json.at("warp_wide").get_to(analysis.warp_wide);
  json.at("static_shared_bytes").get_to(analysis.static_shared_bytes);
  json.at("parameter_bytes").get_to(analysis.parameter_bytes);
  return analysis;
}

Json to_json(const injector::KernelForms& forms) {
  Json work = Json::array();
  for (const injector::Work& each : forms.work)
    work.push_back({each.flops, each.bytes, each.instructions});
  return {{"name", forms.name},
          {"worker", forms.worker},
          {"compact_worker", forms.compact_worker},
          {"slice", forms.slice},
          {"profile", forms.profile},
          {"work", std::move(work)},
          {"analysis", to_json(forms.analysis)}};
}

injector::KernelForms forms_of(const Json& json) {
  injector::KernelForms forms;
  json.at("name").get_to(forms.name);
  json.at("worker").get_to(forms.worker);
  json.at("compact_worker").get_to(forms.compact_worker);
  json.at("slice").get_to(forms.slice);
  json.at("profile").get_to(forms.profile);
  for (const Json& each : json.at("work")) {
    forms.work.push_back({.flops = each.at(0).get<double>(),
                          .bytes = each.at(1).get<double>(),
                          .instructions = each.at(2).get<double>()});
  }
  forms.analysis = analysis_of(json.at("analysis"));
  return forms;
}

Result<MadeForms> made_of(const Json& json) {
  if (json.at("version") != kVersion)
    return fail(ErrorCode::kInvalidValue, "forms of another version of slate");
  MadeForms made;
  made.forms = forms_of(json.at("forms"));
  json.at("variables").get_to(made.variables);
  made.kind = device::ImageKind::kCubin;
  const std::vector<std::uint8_t>& code = json.at("code").get_binary();
  const auto bytes = std::as_bytes(std::span(code));
  made.code.assign(bytes.begin(), bytes.end());
  json.at("why_none").get_to(made.why_none);
  json.at("cost_ms").get_to(made.cost_ms);
  return made;
}

}  // namespace

std::vector<std::byte> pack(const MadeForms& made) {
  const auto* const code = reinterpret_cast<const std::uint8_t*>(made.code.data());
  const Json json = {
      {"version", kVersion},         {"forms", to_json(made.forms)},
      {"variables", made.variables}, {"code", Json::binary({code, code + made.code.size()})},
      {"why_none", made.why_none},   {"cost_ms", made.cost_ms}};
  const std::vector<std::uint8_t> bytes = Json::to_cbor(json);
  const auto packed = std::as_bytes(std::span(bytes));
  return {packed.begin(), packed.end()};
}

Result<MadeForms> unpack(std::span<const std::byte> bytes) {
  try {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return made_of(Json::from_cbor(begin, begin + bytes.size()));
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kInvalidValue, fmt::format("damaged forms: {}", error.what()));
  }
}

}  // namespace slate::daemon
