// Undefined values: whether a function may read a register before it has written to it, with an
// effect. Machine code finds there what other code has left, and each form of a kernel leaves
// something else.
//
// A value that only flows on through registers is no finding. A value that reaches memory, an
// address, a branch, another lane or a call is one. Paths that the program cannot take are not
// followed, as far as its predicates tell. It errs only towards a finding. A pure function. Thread:
// any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The first read of an undefined register that was found.
struct UndefinedRead {
  std::uint32_t line = 0;  // line of the instruction that reads it
  std::string register_name;
  bool surely = false;  // whether no path can have written it
};

/// Finds such a read. Covers registers only, not local or shared memory. `effort` limits the
/// search.
std::optional<UndefinedRead> find_undefined_read(const ptx::Function& function,
                                                 const ControlFlow& flow, Effort& effort);

}  // namespace slate::injector
