// Lanes: how sim stores registers, and the contract between the decoder (program.cc) and the
// arithmetic (alu.h). A register is 32 consecutive values, one per lane of the warp, so that one
// instruction is one loop that the compiler turns into vector code.
#pragma once

#include <cstdint>

namespace slate::sim {

inline constexpr int kWarpSize = 32;

/// One bit per lane, lane 0 lowest. A predicate register is one Mask.
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = 0xffffffffu;

/// Storage of one register: 8- and 16-bit types take 2 bytes a lane, 32-bit types 4, 64-bit types
/// 8, 128-bit types 16; a predicate is one Mask. Upper bits of an 8-bit value in its 2 bytes are
/// unspecified. Every register begins at a multiple of 64 bytes.
inline constexpr std::uint32_t kRegisterAlign = 64;

/// Operands of one arithmetic instruction, as pointers to lane storage. Immediates are registers
/// whose lanes all hold the same value. Sources may alias destinations.
struct AluOperands {
  void* d = nullptr;      // destination lanes, or a Mask for setp and friends
  void* d2 = nullptr;     // the Mask after the bar of `p|q` and `d|p`, else null
  const void* s[5] = {};  // source lanes; a Mask for predicate sources (never negated)
  Mask* carry = nullptr;  // the warp's CC.CF, for add.cc, addc, madc, ...
};

/// Executes one instruction for the lanes in `active`; the other lanes' destinations stay as they
/// are.
using AluFn = void (*)(const AluOperands& operands, Mask active);

}  // namespace slate::sim
