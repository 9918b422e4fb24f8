// Work: what one instruction does by its text, for one thread: floating-point operations and bytes
// of global memory asked for. No control flow here; profile.cc counts how often. Pure functions.
// Thread: any.
//
// - FLOPs: an addition, subtraction, multiplication, division, root or other function is 1 for each
//   element, a fused multiply-add 2. Of a matrix instruction each thread has its share.
//   Comparisons, conversions and integers are 0.
// - Bytes: those that threads ask for, cached or not. Textures, tensor copies
//   (cp.async.bulk.tensor) and tcgen05 are not known from the text and are 0.
#pragma once

#include <cstdint>

#include "injector/ptx/module.h"

namespace slate::injector {

struct Work {
  double flops = 0;
  double bytes = 0;
  double instructions = 0;  // instructions of the PTX

  Work& operator+=(const Work& other);
  Work operator*(double times) const;
};

/// Which memory an access reaches, as far as the text tells.
enum class AccessSpace : std::uint8_t {
  kNone,     // no access of global memory
  kGlobal,   // certainly global memory
  kGeneric,  // by an address that may be anywhere
};

struct InstructionWork {
  Work work;  // kGeneric: with bytes as if it went to global memory
  AccessSpace space = AccessSpace::kNone;
  /// kGeneric: the address; null if its space cannot be asked for.
  const ptx::Operand* address = nullptr;
  /// Register that holds the number of bytes; then work.bytes is 0. Null: none.
  const ptx::Operand* amount = nullptr;
};
/// The work of an instruction. Requires: `instruction` is one of `function`.
InstructionWork work_of(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace slate::injector
