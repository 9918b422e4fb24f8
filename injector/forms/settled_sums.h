// Settled sums: a module in which no assembler may choose any more whether a multiplication and an
// addition become one instruction. A sum that ptxas would fuse in the program's own text is written
// as a fused multiply-add; every other sum names its rounding. The forms of such a module compute
// the same bits whatever stands around their code. Text in, text out. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::injector {

struct SettledModule {
  std::string ptx;
  /// Whether sums are left to the assembler, by index into Module::functions: no text says what
  /// ptxas makes of them (Contraction::open).
  std::vector<bool> open;
};

/// Settles the functions marked in `which`, by index into Module::functions. Errors: kInternal if
/// the pass contradicts itself.
Result<SettledModule> settle_sums(const ptx::Module& module, const std::vector<bool>& which);

}  // namespace slate::injector
