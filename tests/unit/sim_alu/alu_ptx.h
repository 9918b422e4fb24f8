// PTX kernels that run one entry of the arithmetic table on many inputs, so that a real GPU can be
// asked.
#pragma once

#include <string>

#include "device/sim/alu_index.h"

namespace slate::sim {

/// Thread i of kernel `k<index>` reads its sources from in[source * count + i] (8 bytes each;
/// source 5 is the carry), runs the instruction and writes the result to out[i] and the second
/// predicate or carry to out[count + i].
struct AluKernels {
  std::uint32_t count = 2048;
  std::uint32_t lop3_table = 0xca;

  std::string header() const;
  std::string kernel(int index, const std::string& name, const AluOp& op) const;
};

/// "cvt.s32.s8.w4:4": the instruction's text, and bytes of its registers (index 0 the destination),
/// 0 = by type.
struct AluSpelling {
  std::string text;
  int d_bytes = 0;
  int s_bytes = 0;
};
AluSpelling spell(const std::string& name);

}  // namespace slate::sim
