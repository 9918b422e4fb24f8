// computed_origin(): from which pointers the result of one instruction is computed, by those of its
// operands. Not for moves, loads, stores and calls (function_flow.h). Thread: one at a time.
#pragma once

#include "injector/analysis/function_flow.h"
#include "injector/analysis/roots.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The origin of the results; of what is not known, that of any pointer. `origins`: those of
/// `flow`.
OriginTable::Id computed_origin(const FunctionFlow& flow, OriginTable& origins,
                                const ptx::Instruction& instruction);

}  // namespace slate::injector
