#include "daemon/dispatch/form_module.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace slate::daemon {
namespace {

/// With so many, an SM's registers suffice for all the threads that it can hold.
constexpr std::uint32_t kFreeRegisters = 32;
constexpr std::uint32_t kRegisterUnit = 8;  // hardware gives them out in eights
constexpr int kMostAttempts = 2;            // with a limit, and lean with a limit

using RegisterLimits = decltype(injector::InjectOptions::most_registers);

std::uint32_t round_up(std::uint32_t registers) {
  return (registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
}

/// Of a thread.
struct Needs {
  std::uint32_t registers = 0;
  std::uint32_t local_bytes = 0;
};

/// The most that any of these functions needs; empty names are none.
Result<Needs> needs_of(device::Device& device, device::Module module,
                       std::initializer_list<std::string_view> names) {
  Needs needs;
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    const auto function = device.find_function(module, std::string(name));
    if (!function) return std::unexpected(function.error());
    const auto info = device.function_info(*function);
    if (!info) return std::unexpected(info.error());
    needs.registers = std::max(needs.registers, info->registers);
    needs.local_bytes = std::max(needs.local_bytes, info->local_bytes);
  }
  return needs;
}

/// Limits the registers of worker forms that take too many, and makes those lean that spill under
/// such a limit. True if there was any.
Result<bool> tighten(device::Device& device, device::Module module,
                     const std::vector<injector::KernelForms>& kernels, RegisterLimits& limits) {
  bool any = false;
  for (const injector::KernelForms& kernel : kernels) {
    if (kernel.worker.empty()) continue;
    const auto native = needs_of(device, module, {kernel.name});
    if (!native) return std::unexpected(native.error());
    const auto worker = needs_of(device, module, {kernel.worker, kernel.compact_worker});
    if (!worker) return std::unexpected(worker.error());
    const std::uint32_t most = std::max(kFreeRegisters, round_up(native->registers));
    const auto limit = limits.find(kernel.name);
    if (limit == limits.end()) {
      if (worker->registers <= most) continue;
      limits[kernel.name] = {.most = most, .lean = false};
    } else {
      if (limit->second.lean || worker->local_bytes <= native->local_bytes) continue;
      limit->second.lean = true;
    }
    any = true;
  }
  return any;
}

}  // namespace

const injector::KernelForms* FormModule::find(std::string_view kernel) const {
  const auto found = std::ranges::find(kernels, kernel, &injector::KernelForms::name);
  return found == kernels.end() ? nullptr : &*found;
}

PtxRewriter rewriter_of(std::string_view text, std::function<void(const ptx::Module&)> look) {
  return [text, look = std::move(look)](
             const injector::InjectOptions& options) -> Result<injector::InjectedModule> {
    const auto parsed = ptx::parse(std::string(text), ptx::ParseLimits::for_text(text.size()));
    if (!parsed) return std::unexpected(parsed.error());
    if (look) look(**parsed);
    auto injected = injector::inject(**parsed, options);
    if (!injected) return injected;
    for (injector::KernelForms& kernel : injected->kernels) kernel.analysis.name = {};
    return injected;
  };
}

Result<FormModule> load_forms(device::Device& device, const PtxRewriter& rewrite,
                              const PtxLoader& load, bool profile) {
  injector::InjectOptions options{.profile = profile, .most_registers = {}};
  auto injected = rewrite(options);
  if (!injected) return std::unexpected(injected.error());
  auto module = load(injected->ptx);
  if (!module) return std::unexpected(module.error());
  // sim's registers are an estimate that limits nothing.
  const int attempts = device.info().is_simulated == 0 ? kMostAttempts : 0;
  for (int i = 0; i < attempts; ++i) {
    const auto any = tighten(device, *module, injected->kernels, options.most_registers);
    if (!any) {
      device.unload_module(*module);
      return std::unexpected(any.error());
    }
    if (!*any) break;
    auto limited = rewrite(options);
    const auto again =
        limited ? load(limited->ptx) : Result<device::Module>(std::unexpected(limited.error()));
    if (!again) break;  // some code cannot do with so few: then fewer workers fit
    device.unload_module(*module);
    module = *again;
    injected = std::move(limited);
  }
  return FormModule{.module = *module, .kernels = std::move(injected->kernels), .code = 0};
}

}  // namespace slate::daemon
