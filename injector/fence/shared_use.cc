#include "injector/fence/shared_use.h"

#include <algorithm>

#include "injector/analysis/analysis.h"
#include "injector/fence/clearing.h"

namespace slate::injector {
namespace {

bool may_be_shared(const Access& access) {
  return access.space == MemorySpace::kShared || access.space == MemorySpace::kGeneric;
}

bool is_shared(const ptx::Variable& variable) {
  return variable.space == ptx::Space::kShared;
}

}  // namespace

SharedUse::SharedUse(const ptx::Module& module, const ptx::Function& function,
                     const ControlFlow& flow, const Registers& registers,
                     std::span<const InstructionEffect> effects, const LaunchValues* launch)
    : module_(module),
      function_(function),
      effects_(effects),
      launch_(launch),
      variables_(module, function, launch == nullptr ? 0 : launch->shared_bytes) {
  rehearse(flow, registers);
}

/// Of a kernel that has shared memory.
void SharedUse::rehearse(const ControlFlow& flow, const Registers& registers) {
  const auto& all = variables_.all();
  if (launch_ == nullptr || all.empty() || all.size() > SharedVariables::kMost) return;
  const bool has_own = std::ranges::any_of(all, [](const ptx::Variable* variable) {
    return variable->name.starts_with(kReservedPrefix);
  });
  constexpr std::uint64_t kMost = 1024;  // threads of a block
  const auto& block = launch_->block;
  std::uint64_t threads = 1;
  for (const std::uint32_t each : block) threads = std::min(threads * each, kMost + 1);
  if (has_own || threads == 0 || threads > kMost) return;
  rehearsal_.emplace(function_, flow, registers, variables_, effects_,
                     ThreadStep::Index{block[0], block[1], block[2]});
  if (!rehearsal_->is_complete()) rehearsal_.reset();
}

bool SharedUse::has_none() const {
  const bool calls = std::ranges::any_of(
      function_.instructions, [](const ptx::Instruction& each) { return each.opcode == "call"; });
  return launch_ != nullptr && launch_->shared_bytes == 0 && !calls &&
         std::ranges::none_of(function_.variables, is_shared) &&
         std::ranges::none_of(module_.variables, is_shared);
}

void SharedUse::note(const Access& access, std::uint32_t at, const ptx::Variable* variable) {
  if (!rehearsal_ || !may_be_shared(access)) return;
  if (variable != nullptr && !is_shared(*variable)) return;
  if (only_stores(function_.instructions[at], effects_[at]))
    stores_.push_back(at);
  else
    reads_.push_back({.at = at, .variable = variable});
}

bool SharedUse::stays_within(const Access& access, std::uint32_t at) {
  if (!rehearsal_ || !may_be_shared(access) || access.amount != nullptr) return false;
  const Rehearsed& all = rehearsal_->at(at);
  // A generic address keeps its check where no thread was seen to use it: it may lead anywhere.
  const bool is_seen = access.space == MemorySpace::kShared || !all.variables.empty();
  if (!all.is_within || !is_seen) return false;
  is_for_block_ = true;
  return true;
}

SharedClearing SharedUse::clearing(const std::vector<bool>& ends, BoundFinder& finder,
                                   std::vector<BoundClaim>& claims) {
  const auto& block = launch_->block;
  SharedClearing clearing = shared_clearing(variables_, *rehearsal_, stores_, reads_, ends,
                                            {block[0], block[1], block[2]});
  const bool can_name = std::ranges::all_of(clearing.parts, [&](const SharedClearing::Part& part) {
    return part.variable->span.end <= entry_of(function_);
  });
  if (!can_name) clearing = {};
  is_for_block_ |= !clearing.is_whole && !reads_.empty();
  if (!is_for_block_) return clearing;
  for (std::uint32_t axis = 0; axis < 3; ++axis)
    claims.push_back(finder.has_threads(axis, block[axis]));
  if (variables_.has_dynamic()) claims.push_back(finder.has_shared(launch_->shared_bytes));
  return clearing;
}

}  // namespace slate::injector
