// Work: what one instruction does, by the text: floating-point operations and bytes of global
// memory asked for, of one thread. No control flow here; profile.cc counts how often.
//
// FLOPs: an addition, subtraction, multiplication, division, root or other function is 1 for each
// element, a fused multiply-add 2; of a matrix instruction each thread has its share. Comparisons,
// conversions and integers are 0. Bytes are what threads ask for, caches or not; textures, tensor
// copies (cp.async.bulk.tensor) and tcgen05 are not known from the text and are 0.
#pragma once

#include <cstdint>

#include "injector/ptx/module.h"

namespace slate::injector {

struct Work {
  double flops = 0;
  double bytes = 0;
  double instructions = 0;  // as in the PTX

  Work& operator+=(const Work& other);
  Work operator*(double times) const;
};

/// Where an access goes, as far as the text tells.
enum class Reach : std::uint8_t {
  kNone,     // no access of global memory
  kGlobal,   // certainly of global memory
  kGeneric,  // by an address that may be anywhere
};

struct InstructionWork {
  Work work;  // with bytes for kGeneric as if it went to global memory
  Reach reach = Reach::kNone;
  /// The address, for kGeneric. Null: none whose place could be asked for.
  const ptx::Operand* address = nullptr;
  /// Bytes are as many as this register says, and work.bytes is 0.
  const ptx::Operand* amount = nullptr;
};
/// `instruction` is one of `function`.
InstructionWork work_of(const ptx::Function& function, const ptx::Instruction& instruction);

}  // namespace slate::injector
