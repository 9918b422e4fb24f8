#include "daemon/dispatch/form_module.h"

#include <algorithm>

namespace slate::daemon {
namespace {

/// With so many, an SM's registers suffice for all the threads that it can hold.
constexpr std::uint32_t kFreeRegisters = 32;
constexpr std::uint32_t kRegisterUnit = 8;  // hardware gives them out in eights

using RegisterLimits = decltype(injector::InjectOptions::most_registers);

std::uint32_t round_up(std::uint32_t registers) {
  return (registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
}

Result<std::uint32_t> registers_of(device::Device& device, device::Module module,
                                   const std::string& name) {
  const auto function = device.find_function(module, name);
  if (!function) return std::unexpected(function.error());
  const auto info = device.function_info(*function);
  if (!info) return std::unexpected(info.error());
  return info->registers;
}

/// By kernel, the registers that its worker form may have and exceeds.
Result<RegisterLimits> limits_for(device::Device& device, device::Module module,
                                  const std::vector<injector::KernelForms>& kernels) {
  RegisterLimits limits;
  for (const injector::KernelForms& kernel : kernels) {
    if (kernel.worker.empty()) continue;
    const auto native = registers_of(device, module, kernel.name);
    if (!native) return std::unexpected(native.error());
    const auto worker = registers_of(device, module, kernel.worker);
    if (!worker) return std::unexpected(worker.error());
    const std::uint32_t most = std::max(kFreeRegisters, round_up(*native));
    if (*worker > most) limits.emplace(kernel.name, most);
  }
  return limits;
}

}  // namespace

const injector::KernelForms* FormModule::find(std::string_view kernel) const {
  const auto found = std::ranges::find(kernels, kernel, &injector::KernelForms::name);
  return found == kernels.end() ? nullptr : &*found;
}

Result<FormModule> load_forms(device::Device& device, const ptx::Module& ptx, const PtxLoader& load,
                              bool profile) {
  injector::InjectOptions options{.profile = profile, .most_registers = {}};
  auto injected = injector::inject(ptx, options);
  if (!injected) return std::unexpected(injected.error());
  auto module = load(injected->ptx);
  if (!module) return std::unexpected(module.error());
  // sim's registers are an estimate that limits nothing.
  if (device.info().is_simulated == 0) {
    auto limits = limits_for(device, *module, injected->kernels);
    if (!limits) {
      device.unload_module(*module);
      return std::unexpected(limits.error());
    }
    if (!limits->empty()) {
      options.most_registers = std::move(*limits);
      const auto limited = injector::inject(ptx, options);
      const auto again =
          limited ? load(limited->ptx) : Result<device::Module>(std::unexpected(limited.error()));
      // Some code cannot do with so few: then fewer workers fit.
      if (again) {
        device.unload_module(*module);
        module = *again;
      }
    }
  }
  FormModule result{.module = *module, .kernels = std::move(injected->kernels), .code = 0};
  for (injector::KernelForms& kernel : result.kernels) kernel.analysis.name = {};
  return result;
}

}  // namespace slate::daemon
