// How the files alu_*.cc hand their functions to find_alu: each fills the table with pairs of name
// and AluOp. They are compiled once for each instruction set of the host, each time in another
// namespace (SLATE_ALU_ISA). So this header declares only what both copies may see, and has no
// inline function: the linker must never choose between two copies. Thread: the one that fills the
// table.
#pragma once

#include "device/sim/alu.h"

namespace slate::sim {

class AluTable;

/// The parts of a name, which dots join; null parts are left out. {"add", nullptr, "s32"} is
/// "add.s32".
struct AluName {
  const char* part[9];
};

void add_entry(AluTable& table, const AluName& name, const AluOp& op);

}  // namespace slate::sim

#define SLATE_ALU_FILLS(isa)          \
  namespace slate::sim::isa {         \
  void fill_integer(AluTable& table); \
  void fill_carry(AluTable& table);   \
  void fill_bits(AluTable& table);    \
  void fill_video(AluTable& table);   \
  void fill_float(AluTable& table);   \
  void fill_approx(AluTable& table);  \
  void fill_half(AluTable& table);    \
  void fill_compare(AluTable& table); \
  void fill_convert(AluTable& table); \
  void fill_pack(AluTable& table);    \
  }
SLATE_ALU_FILLS(isa_base)
SLATE_ALU_FILLS(isa_v3)
#undef SLATE_ALU_FILLS
