#include "daemon/engine/fenced_kernels.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/engine/made_modules.h"
#include "injector/fence/member_text.h"
#include "injector/fence/own_constants.h"

namespace slate::daemon {

Result<FunctionRecord*> FencedKernels::find(std::uint64_t id, FunctionRecord& kernel,
                                            const std::shared_ptr<const FormSource>& source,
                                            device::Module own, const LaunchOf& launch) {
  auto found = kernels_.find(id);
  if (found == kernels_.end()) {
    auto made = or_out_of_memory([&] { return make(kernel, source, own, launch); });
    if (!made) return std::unexpected(made.error());
    if (!made->why_not.empty()) {
      log_of_user(loader_.uid, LogLevel::kInfo, "session {}: {} has no fence: {}", session_,
                  *kernel.name, made->why_not);
    }
    found = kernels_.emplace(id, std::move(*made)).first;
    fence_->count(found->second.why_not.empty());
  }
  if (!found->second.why_not.empty()) return nullptr;
  FunctionRecord& fenced = found->second.kernel;
  const std::uint32_t shared = kernel.info.max_dynamic_shared_bytes;
  if (shared > fenced.info.max_dynamic_shared_bytes) {
    if (const auto set = device_.set_max_dynamic_shared(fenced.function, shared); !set)
      return std::unexpected(set.error());
    if (fenced.bounded != nullptr &&
        !device_.set_max_dynamic_shared(fenced.bounded->function(), shared)) {
      fenced.bounded.reset();
    }
    fenced.info.max_dynamic_shared_bytes = shared;
  }
  return &fenced;
}

std::string FencedKernels::why_not(std::uint64_t id) const {
  const auto found = kernels_.find(id);
  return found == kernels_.end() ? std::string() : found->second.why_not;
}

Result<FencedKernels::Fenced> FencedKernels::make(const FunctionRecord& kernel,
                                                  const std::shared_ptr<const FormSource>& source,
                                                  device::Module own, const LaunchOf& launch) {
  Fenced result;
  FunctionRecord& fenced = result.kernel;
  fenced.module = kernel.module;
  if (source == nullptr) {
    result.why_not = "its module has no PTX";
    return result;
  }
  const injector::LaunchValues first = launch();
  FirstLaunch copied{.is_known = true,
                     .parameters = {first.parameters.begin(), first.parameters.end()},
                     .shared_bytes = first.shared_bytes,
                     .low = first.low,
                     .bytes = first.bytes};
  std::ranges::copy(first.grid, copied.grid);
  std::ranges::copy(first.block, copied.block);
  const auto made =
      maker_->make(source, *kernel.name, loader_, Fencing::kKernel, std::move(copied));
  if (!made->why_none.empty()) {
    result.why_not = made->why_none;
    return result;
  }
  const auto module = load_made(device_, loaded_, *made, own);
  if (!module) return std::unexpected(module.error());
  result.module = *module;
  const auto function = device_.find_function(*module, *kernel.name);
  if (!function) return std::unexpected(function.error());
  auto info = device_.function_info(*function);
  if (!info) return std::unexpected(info.error());
  fenced.function = *function;
  fenced.info = std::move(*info);
  fenced.parameter_bytes = parameter_bytes_of(fenced.info);
  fenced.name = kernel.name;
  fenced.code = ~kernel.code;  // its times are not those of the program's own code
  fenced.is_fenced = true;
  if (!made->bounds.claims.empty()) {
    const auto copy = device_.find_function(*module, *kernel.name + injector::kBoundedSuffix);
    if (!copy) return std::unexpected(copy.error());
    const auto needs = device_.function_info(*copy);
    if (!needs) return std::unexpected(needs.error());
    fenced.info.local_bytes = std::max(fenced.info.local_bytes, needs->local_bytes);
    auto constants = constants_of(*made, *module, own);
    if (!constants) return std::unexpected(constants.error());
    fenced.bounded = std::make_shared<BoundedCopy>(*copy, made->bounds, std::move(*constants));
  }
  fenced.may_write_constants = made->forms.analysis.reach.may_write_constants();
  if (maker_->wants_forms()) fenced.form_progress = FormProgress::kNew;
  if (const auto told = tell(fenced, *module, *made, own); !told)
    return std::unexpected(told.error());
  return result;
}

/// Of the bounded copy in `module`; null if it has none.
Result<std::shared_ptr<OwnConstantSet>> FencedKernels::constants_of(const MadeForms& made,
                                                                    device::Module module,
                                                                    device::Module own) {
  if (made.bounds.constants.empty()) return nullptr;
  auto set = std::make_shared<OwnConstantSet>();
  for (const std::uint32_t row : made.bounds.constants) {
    if (row >= made.variables.size())
      return fail(ErrorCode::kInternal, "a bounded copy has a constant that there is not");
    const auto program = device_.find_global(own, made.variables[row]);
    if (!program) return std::unexpected(program.error());
    const auto copy = device_.find_global(module, injector::own_constant(row));
    if (!copy) return std::unexpected(copy.error());
    if (copy->bytes != program->bytes)
      return fail(ErrorCode::kInternal, "a bounded copy has a constant of another size");
    set->pairs.push_back({.program = *program, .own = copy->base});
  }
  fence_->constants().watch(set);
  return set;
}

Result<void> FencedKernels::tell(const FunctionRecord& kernel, device::Module module,
                                 const MadeForms& made, device::Module own) {
  for (const std::string& name : made.variables) {
    const auto variable = device_.find_global(own, name);
    if (!variable) return std::unexpected(variable.error());
    fence_->add_variable(own, *variable);
  }
  const auto constants = device_.find_global(module, std::string(injector::kFenceConstants));
  if (!constants) return std::unexpected(constants.error());
  return fence_->add_module(module, constants->base,
                            {.kernel = kernel.name, .functions = made.functions});
}

std::vector<device::Module> FencedKernels::forget(std::uint64_t module) {
  std::vector<device::Module> unused;
  std::erase_if(kernels_, [&](const auto& entry) {
    const Fenced& fenced = entry.second;
    if (fenced.kernel.module != module) return false;
    for (const device::Module each : {fenced.module, fenced.kernel.form_module}) {
      if (each == device::Module{}) continue;
      fence_->remove_module(each);
      unused.push_back(each);
    }
    return true;
  });
  return unused;
}

}  // namespace slate::daemon
