// Scopes inside a function's body (ptx::Function::scopes). Not the scopes of values, which are
// uniformity.h. A pure function. Thread: any.
#pragma once

#include <cstdint>

#include "injector/ptx/module.h"

namespace slate::injector {

/// The scope that holds the instruction; null if there is none.
const ptx::InnerScope* scope_of(const ptx::Function& function, std::uint32_t instruction);

}  // namespace slate::injector
