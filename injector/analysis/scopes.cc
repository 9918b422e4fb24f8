#include "injector/analysis/scopes.h"

#include <algorithm>

namespace slate::injector {

const ptx::InnerScope* scope_of(const ptx::Function& function, std::uint32_t instruction) {
  const auto& scopes = function.scopes;
  const auto found = std::ranges::upper_bound(scopes, instruction, {}, &ptx::InnerScope::end);
  return found != scopes.end() && found->first <= instruction ? &*found : nullptr;
}

}  // namespace slate::injector
