// Scopes inside a function's body: compilers put calls into braces, and so does inline PTX. A label
// in one cannot be jumped to from outside, nor are its registers known there.
#pragma once

#include <cstdint>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::injector {

struct InnerScope {
  std::uint32_t first = 0;  // instructions [first, end), at least one
  std::uint32_t end = 0;
  ptx::Span span;  // from { to and including }
};

/// The outermost ones, in text order.
std::vector<InnerScope> inner_scopes(const ptx::Module& module, const ptx::Function& function);
/// The one that holds the instruction, or null.
const InnerScope* scope_of(const std::vector<InnerScope>& scopes, std::uint32_t instruction);

}  // namespace slate::injector
