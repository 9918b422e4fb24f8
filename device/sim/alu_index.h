// AluTable: every arithmetic instruction by its canonical name ("fma.rn.ftz.f32"), one table for
// each instruction set of the host. For find_alu, tests and benchmarks; other code of sim calls
// find_alu. Immutable once made. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "device/sim/alu_table.h"

namespace slate::sim {

enum class AluIsa : std::uint8_t { kBase, kV3 };  // kBase: any x86-64; kV3: with AVX2, FMA and F16C

class AluTable {
 public:
  /// The table for `isa`. Requires: alu_isa_supported(isa) before any function of it is called.
  static const AluTable& of(AluIsa isa);

  /// Null if there is no instruction of that name.
  const AluOp* find(std::string_view name) const;
  const std::map<std::string, AluOp, std::less<>>& entries() const { return entries_; }

 private:
  friend void add_entry(AluTable& table, const AluName& name, const AluOp& op);
  std::map<std::string, AluOp, std::less<>> entries_;
};

/// Whether this host runs that instruction set.
bool alu_isa_supported(AluIsa isa);

}  // namespace slate::sim
