// The modifiers of each opcode that the decoder reads or may ignore. Any other modifier makes the
// instruction unknown: it would change what the instruction does without notice. A pure function.
// Thread: any.
#pragma once

#include "injector/ptx/module.h"

namespace slate::sim {

/// Whether every modifier of `instruction` is a type or is listed for its opcode. Opcodes without a
/// list have modifiers that their own decoder checks, or that mean nothing to sim.
bool knows_modifiers(const ptx::Instruction& instruction);

}  // namespace slate::sim
