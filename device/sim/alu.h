// The arithmetic of sim: finds the function that computes one arithmetic, logic, comparison,
// selection or conversion instruction over the 32 lanes of a warp. No memory, no control flow, no
// state but the carry flags.
//
// Results equal the GPU's bit for bit for integer instructions, conversions and IEEE operations
// (add, sub, mul, fma, div.rn/rz/rm/rp, sqrt.rn/.., rcp.rn; NaN results are the canonical NaN
// 0x7fffffff of the hardware); approximations (ex2, lg2, sin, cos, rsqrt, tanh, div.approx, ...)
// stay within the bounds that the PTX manual gives.
#pragma once

#include <optional>

#include "device/sim/lanes.h"
#include "injector/ptx/module.h"

namespace slate::sim {

struct AluOp {
  AluFn fn = nullptr;
  ptx::Type d = ptx::Type::kNone;  // type of the destination's storage; kPred for setp
  ptx::Type s[5] = {};             // type of each source; kNone where there is none
  std::uint8_t sources = 0;
  bool writes_carry = false;
  bool reads_carry = false;
};

/// Widths of the registers that the instruction names, where they may differ from its types (cvt,
/// mov of sub-word types): bytes per lane of storage. 0 = as the type says.
struct OperandWidths {
  std::uint8_t d = 0;
  std::uint8_t s[5] = {};
};

/// nullopt when `instruction` is not arithmetic or is not known.
std::optional<AluOp> find_alu(const ptx::Instruction& instruction,
                              const OperandWidths& widths = {});

}  // namespace slate::sim
