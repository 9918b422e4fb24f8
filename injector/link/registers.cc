#include "injector/link/registers.h"

#include <algorithm>
#include <vector>

#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::ptx {
namespace {

bool has_limit(const Function& entry) {
  constexpr std::string_view kOwn[] = {"maxnreg", "maxntid", "reqntid"};
  return std::ranges::any_of(
      kOwn, [&](std::string_view name) { return entry.directive(name) != nullptr; });
}

}  // namespace

Result<std::string> limit_registers(std::string_view module, std::uint32_t most) {
  const auto parsed = parse(std::string(module));
  if (!parsed) return std::unexpected(parsed.error());
  std::vector<Edit> edits;
  for (const Function& function : (*parsed)->functions) {
    if (!function.is_entry || !function.has_body || has_limit(function)) continue;
    edits.push_back(insert_at(function.body.begin, "\n.maxnreg " + std::to_string(most) + "\n"));
  }
  return apply_edits(**parsed, std::move(edits));
}

}  // namespace slate::ptx
