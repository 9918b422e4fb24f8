// Scopes inside a function's body: ptx::Function::scopes.
#pragma once

#include <cstdint>

#include "injector/ptx/module.h"

namespace slate::injector {

/// The one that holds the instruction, or null.
const ptx::InnerScope* scope_of(const ptx::Function& function, std::uint32_t instruction);

}  // namespace slate::injector
