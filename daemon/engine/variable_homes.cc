#include "daemon/engine/variable_homes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/engine/compiler.h"

namespace slate::daemon {

Result<device::AddressRange> ProgramModule::find(device::Device& device,
                                                 const std::string& name) const {
  if (home == nullptr) return device.find_global(handle, name);
  const auto found = home->variables.find(name);
  if (found == home->variables.end())
    return fail(ErrorCode::kSymbolNotFound, "no variable " + name + " in the module");
  return found->second;
}

Result<std::optional<ProgramModule>> VariableHomes::load(std::uint64_t bytes,
                                                         std::optional<device::Address> past,
                                                         const Move& move, const Load& load) {
  if (!past && (!has_memory() || bytes == 0)) return std::nullopt;
  const auto address = past ? Result<device::Address>(*past) : memory_.take(bytes);
  if (!address) return std::unexpected(address.error());
  const device::AddressRange home{*address, bytes};
  auto code = move(home);
  Result<ProgramModule> module = code ? load_code(home, std::move(*code), past.has_value(), load)
                                      : std::unexpected(code.error());
  if (module) return std::optional(std::move(*module));
  if (past) {
    return fail(ErrorCode::kUnavailable,
                "the variables of a module cannot be where they were: " + module.error().message);
  }
  memory_.give_back(*address);
  if (is_about_the_device(module.error())) return std::unexpected(module.error());
  return std::nullopt;
}

Result<ProgramModule> VariableHomes::load_code(device::AddressRange home, HomedCode code,
                                               bool is_past, const Load& load) {
  const auto module = load(code.code);
  if (!module) return std::unexpected(module.error());
  const auto bank = find_bank(*module, code, is_past);
  const auto filled = is_past || !bank ? Result<void>() : fill(home, code.contents);
  if (!bank || !filled) {
    device_.unload_module(*module);
    return std::unexpected(bank ? filled.error() : bank.error());
  }
  return ProgramModule{
      .handle = *module,
      .home = std::make_shared<const ModuleHome>(home, std::move(code.variables), *bank)};
}

/// By copies alone: a kernel of the driver's would wait for room beside those of other sessions.
Result<void> VariableHomes::fill(device::AddressRange home, std::span<const std::byte> contents) {
  constexpr std::size_t kMostAtOnce = 1 << 20;
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(home.bytes, kMostAtOnce));
  Result<void> done;
  const auto put = [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    done = copies_.begin(Place::on_device(home.base + offset), Place::on_host(bytes.data()),
                         bytes.size());
  };
  if (!contents.empty()) put(0, contents);
  for (std::uint64_t at = contents.size(); done && at < home.bytes; at += zeros.size())
    put(at, std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), home.bytes - at)));
  const auto finished = copies_.finish();
  return done ? finished : done;
}

Result<std::shared_ptr<OwnConstantSet>> VariableHomes::find_bank(device::Module module,
                                                                 const HomedCode& code,
                                                                 bool is_past) const {
  if (code.banks.empty()) return nullptr;
  auto set = std::make_shared<OwnConstantSet>();
  set->may_be_unseen = is_past;
  for (const HomedCode::Bank& bank : code.banks) {
    const auto anchor = device_.find_global(module, bank.anchor);
    if (!anchor) return std::unexpected(anchor.error());
    set->pairs.push_back({.program = bank.home, .own = anchor->base - bank.offset});
  }
  return set;
}

}  // namespace slate::daemon
