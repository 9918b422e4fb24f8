#include "injector/analysis/undefined.h"

#include <utility>
#include <vector>

#include "injector/analysis/register_accesses.h"
#include "injector/analysis/registers.h"
#include "injector/analysis/undefined_walk.h"

namespace slate::injector {

std::optional<UndefinedRead> find_undefined_read(const ptx::Function& function,
                                                 const ControlFlow& flow, Effort& effort) {
  if (flow.blocks().empty()) return std::nullopt;
  const Registers registers(function);
  const RegisterAccesses accesses(function, flow, registers);
  RegisterLiveness liveness(flow, accesses, effort);
  std::vector<std::uint32_t> exposed;
  for (std::uint32_t r = 0; r < accesses.count(); ++r) {
    if (liveness.is_live_at_beginning(r)) exposed.push_back(r);
  }
  if (exposed.empty() || effort.is_spent()) return std::nullopt;
  UndefinedWalk walk(function, flow, registers, effort);
  std::optional<UndefinedRead> first;
  for (const std::uint32_t r : exposed) {
    auto found = walk.find(r);
    if (effort.is_spent()) break;
    if (found && (!first || found->surely)) first = std::move(found);
    if (first && first->surely) break;
  }
  return first;
}

}  // namespace slate::injector
