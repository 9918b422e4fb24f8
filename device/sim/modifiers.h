// Which modifiers the decoder reads or may ignore, per opcode. Any other word makes the instruction
// unknown: it would change what the instruction does, and nobody would notice.
#pragma once

#include "injector/ptx/module.h"

namespace slate::sim {

/// False if `instruction` has a modifier that is neither a type nor listed for its opcode. Opcodes
/// without a list have their modifiers checked by their own decoder, or mean nothing to sim.
bool knows_modifiers(const ptx::Instruction& instruction);

}  // namespace slate::sim
