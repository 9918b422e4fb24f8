#include "daemon/engine/fenced_kernels.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/engine/made_modules.h"
#include "injector/fence/member_text.h"
#include "injector/fence/own_constants.h"

namespace slate::daemon {
namespace {

// Each further copy takes the assembler's time, and memory for its code.
constexpr std::size_t kMostCopiedShapes = 8;  // of one kernel
/// Of one shape: a copy leaves out what its launch did not reach. The rest of a loop that nvcc has
/// unrolled is of four kinds, with which a rehearsed block comes to other addresses.
constexpr std::uint32_t kMostCopies = 4;
constexpr std::uint32_t kLaunchesBeforeCopy = 2;  // unserved ones of its shape, to make one

FirstLaunch copied(const injector::LaunchValues& launch, std::uint32_t further) {
  FirstLaunch result{.is_known = true,
                     .further = further,
                     .parameters = {launch.parameters.begin(), launch.parameters.end()},
                     .shared_bytes = launch.shared_bytes,
                     .low = launch.low,
                     .bytes = launch.bytes};
  std::ranges::copy(launch.grid, result.grid);
  std::ranges::copy(launch.block, result.block);
  return result;
}

}  // namespace

Result<FunctionRecord*> FencedKernels::find(std::uint64_t id, FunctionRecord& kernel,
                                            const std::shared_ptr<const FormSource>& source,
                                            const ProgramModule& own, const LaunchOf& launch) {
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
    std::erase_if(fenced.bounded, [&](const auto& copy) {
      return !device_.set_max_dynamic_shared(copy->function(), shared);
    });
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
                                                  const ProgramModule& own,
                                                  const LaunchOf& launch) {
  Fenced result;
  FunctionRecord& fenced = result.kernel;
  fenced.module = kernel.module;
  if (source == nullptr) {
    result.why_not = "its module has no PTX";
    return result;
  }
  const auto made =
      maker_->make(source, *kernel.name, loader_, Fencing::kKernel, copied(launch(), 0));
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
  if (const auto added = add_copy(fenced, *made, *module, own); !added)
    return std::unexpected(added.error());
  fenced.may_write_constants = made->forms.analysis.reach.may_write_constants();
  if (maker_->wants_forms()) fenced.form_progress = FormProgress::kNew;
  if (const auto told = tell(fenced, *module, *made, own); !told)
    return std::unexpected(told.error());
  return result;
}

/// The bounded copy in `module`, if it has one.
Result<void> FencedKernels::add_copy(FunctionRecord& fenced, const MadeForms& made,
                                     device::Module module, const ProgramModule& own) {
  if (made.bounds.claims.empty()) return {};
  const auto copy = device_.find_function(module, *fenced.name + injector::kBoundedSuffix);
  if (!copy) return std::unexpected(copy.error());
  const auto needs = device_.function_info(*copy);
  if (!needs) return std::unexpected(needs.error());
  const std::uint32_t shared = fenced.info.max_dynamic_shared_bytes;
  if (shared > needs->max_dynamic_shared_bytes && !device_.set_max_dynamic_shared(*copy, shared)) {
    return {};
  }
  fenced.info.local_bytes = std::max(fenced.info.local_bytes, needs->local_bytes);
  auto constants = constants_of(made, module, own);
  if (!constants) return std::unexpected(constants.error());
  fenced.bounded.push_back(
      std::make_shared<BoundedCopy>(*copy, made.bounds, std::move(*constants)));
  return {};
}

void FencedKernels::attend_unserved(std::uint64_t id,
                                    const std::shared_ptr<const FormSource>& source,
                                    const ProgramModule& own,
                                    const injector::LaunchValues& launch) {
  Fenced& fenced = kernels_.at(id);
  if (fenced.copy_order != nullptr) {
    if (!fenced.copy_order->done()) return;
    return take_copy(fenced, *std::exchange(fenced.copy_order, nullptr)->outcome(), own);
  }
  // Without an extent no copy is of use.
  if (launch.bytes == 0) return;
  auto shape = std::ranges::find_if(fenced.shapes, [&](const Shape& each) {
    return each.shared_bytes == launch.shared_bytes && std::ranges::equal(each.block, launch.block);
  });
  if (shape == fenced.shapes.end()) {
    if (fenced.shapes.size() == kMostCopiedShapes) return;
    shape = fenced.shapes.insert(shape, Shape{.shared_bytes = launch.shared_bytes});
    std::ranges::copy(launch.block, shape->block);
  }
  const std::string& name = *fenced.kernel.name;
  while (shape->copies < kMostCopies) {
    const FirstLaunch first = copied(launch, shape->copies + 1);
    if (const auto found = maker_->find(*source, name, Fencing::kKernel, first)) {
      ++shape->copies;
      take_copy(fenced, *found, own);
      if (std::ranges::any_of(fenced.kernel.bounded,
                              [&](const auto& copy) { return copy->serves(launch); }))
        return;
      continue;
    }
    if (++shape->launches < kLaunchesBeforeCopy) return;
    shape->launches = 0;
    ++shape->copies;
    fenced.copy_order =
        maker_->order({loader_.uid, session_}, source, name, Fencing::kKernel, first);
    return;
  }
}

/// A further bounded copy. Without it launches take the kernel with all checks.
void FencedKernels::take_copy(Fenced& fenced, const MadeForms& made, const ProgramModule& own) {
  if (!made.why_none.empty() || made.bounds.claims.empty()) return;
  const auto done = or_out_of_memory([&]() -> Result<void> {
    const auto module = load_made(device_, loaded_, made, own);
    if (!module) return std::unexpected(module.error());
    fenced.further.push_back(*module);
    if (const auto told = tell(fenced.kernel, *module, made, own); !told) return told;
    return add_copy(fenced.kernel, made, *module, own);
  });
  if (!done) {
    log_of_user(loader_.uid, LogLevel::kInfo, "session {}: {} has no further copy: {}", session_,
                *fenced.kernel.name, done.error().message);
  }
}

/// Of the bounded copy in `module`; null if it has none.
Result<std::shared_ptr<OwnConstantSet>> FencedKernels::constants_of(const MadeForms& made,
                                                                    device::Module module,
                                                                    const ProgramModule& own) {
  if (made.bounds.constants.empty()) return nullptr;
  auto set = std::make_shared<OwnConstantSet>();
  // A stranger's machine code need not have the constants of its text.
  if (own.home != nullptr && own.home->constants != nullptr)
    set->may_be_unseen = own.home->constants->may_be_unseen;
  for (const std::uint32_t row : made.bounds.constants) {
    if (row >= made.variables.size())
      return fail(ErrorCode::kInternal, "a bounded copy has a constant that there is not");
    const auto program = own.find(device_, made.variables[row]);
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
                                 const MadeForms& made, const ProgramModule& own) {
  for (const std::string& name : made.variables) {
    if (own.home != nullptr) break;  // they lie in the session's memory
    const auto variable = own.find(device_, name);
    if (!variable) return std::unexpected(variable.error());
    fence_->add_variable(own.handle, *variable);
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
    std::vector<device::Module> modules = fenced.further;
    modules.insert(modules.end(), {fenced.module, fenced.kernel.form_module});
    for (const device::Module each : modules) {
      if (each == device::Module{}) continue;
      fence_->remove_module(each);
      unused.push_back(each);
    }
    return true;
  });
  return unused;
}

}  // namespace slate::daemon
