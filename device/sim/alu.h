// The arithmetic of sim: finds the function that computes one arithmetic, logic, comparison,
// selection or conversion instruction over the 32 lanes of a warp. No memory, no control flow, no
// state but the carry flags. Thread: any.
//
// Integer instructions, conversions and IEEE operations (add, sub, mul, fma, div.rn/rz/rm/rp, sqrt,
// rcp) give the GPU's results bit for bit. NaN results are the hardware's canonical NaN 0x7fffffff.
// Approximations (ex2, lg2, sin, cos, rsqrt, tanh, div.approx, ...) stay within the bounds of the
// PTX manual.
#pragma once

#include <optional>

#include "device/sim/lanes.h"
#include "injector/ptx/module.h"

namespace slate::sim {

/// One instruction's function, and the types of its operands.
struct AluOp {
  AluFn fn = nullptr;
  ptx::Type d = ptx::Type::kNone;  // type of the destination's storage; kPred for setp
  ptx::Type s[5] = {};             // type of each source; kNone: there is none
  std::uint8_t sources = 0;
  bool writes_carry = false;
  bool reads_carry = false;
};

/// Bytes a lane of the registers that the instruction names, where they may differ from its types
/// (cvt, mov of sub-word types); 0: as the type says.
struct OperandWidths {
  std::uint8_t d = 0;
  std::uint8_t s[5] = {};
};

/// The function for `instruction`; nullopt when it is not arithmetic or is unknown.
std::optional<AluOp> find_alu(const ptx::Instruction& instruction,
                              const OperandWidths& widths = {});

}  // namespace slate::sim
