// Undefined values: whether a function may read a register before it has written to it, so that
// something comes of the value. Machine code finds there what other code has left, and each form of
// a kernel leaves something else.
//
// A value that only flows on through registers is not a finding yet; one that reaches memory, an
// address, a branch, another lane or a call is. Paths that the program cannot take are not
// followed, as far as its predicates tell. Errs only towards a finding. Pure function, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/effort.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The first of them that was found.
struct UndefinedRead {
  std::uint32_t line = 0;  // of the instruction that reads it
  std::string register_name;
  bool surely = false;  // nothing can have been written to it, whatever way was taken
};

/// Registers only: what is in local or shared memory is not followed.
std::optional<UndefinedRead> find_undefined_read(const ptx::Function& function,
                                                 const ControlFlow& flow, Effort& effort);

}  // namespace slate::injector
