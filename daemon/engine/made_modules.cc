#include "daemon/engine/made_modules.h"

#include <cstddef>
#include <vector>

namespace slate::daemon {
namespace {

/// The code for the variables of this module.
Result<std::vector<std::byte>> placed_code(device::Device& device, const MadeForms& made,
                                           const ProgramModule& own) {
  std::vector<device::Address> addresses;
  for (const std::string& name : made.variables) {
    const auto variable = own.find(device, name);
    if (!variable) return std::unexpected(variable.error());
    addresses.push_back(variable->base);
  }
  return code_with_addresses(made, addresses);
}

}  // namespace

Result<device::Module> load_made(device::Device& device, LoadedModules& loaded,
                                 const MadeForms& made, const ProgramModule& own) {
  const auto code = placed_code(device, made, own);
  if (!code) return std::unexpected(code.error());
  LoadedModules::Charge charge(loaded);
  const auto charged = charge.take(made.variables.size() * sizeof(device::Address));
  if (!charged) return std::unexpected(charged.error());
  const auto module = device.load_module(made.kind, *code);
  if (!module) return module;
  if (const auto added = loaded.add(*module, charge, LoadedModules::Kind::kForms, 0); !added)
    return std::unexpected(added.error());
  return module;
}

}  // namespace slate::daemon
