// Lanes: how sim stores registers, and the contract between the decoder (program.cc) and the
// arithmetic (alu.h). A register is 32 consecutive values, one for each lane of the warp, so that
// an instruction is one loop that the compiler turns into vector code. Plain values. Thread: any.
#pragma once

#include <cstdint>

namespace slate::sim {

inline constexpr int kWarpSize = 32;

/// One bit for each lane, lane 0 lowest. A predicate register is one Mask.
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = 0xffffffffu;

/// Alignment in bytes of every register. A lane takes 2 bytes of an 8- or 16-bit type, 4 of a
/// 32-bit, 8 of a 64-bit and 16 of a 128-bit type; a predicate is one Mask. Upper bits of an 8-bit
/// value in its 2 bytes are unspecified.
inline constexpr std::uint32_t kRegisterAlign = 64;

/// Operands of one arithmetic instruction, as pointers to lane storage. An immediate is a register
/// whose lanes all hold the same value. Sources may alias destinations.
struct AluOperands {
  void* d = nullptr;      // destination lanes; a Mask for setp and its kind
  void* d2 = nullptr;     // the Mask behind the bar of `p|q` and `d|p`; null: none
  const void* s[5] = {};  // source lanes; a Mask for a predicate source (never negated)
  Mask* carry = nullptr;  // carry flags of the warp (CC.CF), for add.cc, addc, madc, ...
};

/// Executes one instruction for the lanes in `active`. Destinations of other lanes stay as they
/// are.
using AluFn = void (*)(const AluOperands& operands, Mask active);

}  // namespace slate::sim
