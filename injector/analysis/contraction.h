// Contraction: where an assembler may make one fused multiply-add, which rounds once, of a
// multiplication and an addition, which round twice. PTX allows it for a product and a sum that
// name no rounding. Which of them are made one is the assembler's choice, and another text around
// them can change it. Rules and evidence: "Bits" in docs/injector.md.
//
// Pure functions, any thread. Linear in the instructions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// "f32", "f16x2": the type of an addition or subtraction without a rounding; empty: it is none.
/// "mixed" where operands have another type than the result.
std::string_view loose_sum(const ptx::Instruction& instruction);
/// The same of a multiplication.
std::string_view loose_product(const ptx::Instruction& instruction);
/// The same of approximations whose last step, in machine code, is a loose multiplication.
std::string_view hidden_product(const ptx::Instruction& instruction);

/// A product and a sum of it that ptxas makes one instruction.
struct Fusion {
  std::uint32_t product = 0;  // an instruction
  std::uint32_t sum = 0;      // another, of the same region
  std::uint32_t operand = 0;  // of the sum: 1 or 2
  bool negated = false;       // a `neg` stands between them
  bool only = false;          // nothing but such sums reads the product
};

struct Contraction {
  std::vector<Fusion> fusions;  // by the sum, in text order within a region
  /// Those that no text can name: of a hidden product, or of one whose operands are not there any
  /// more.
  std::vector<Fusion> open;
};

/// What ptxas makes of the function. It decides for each region of straight code by itself: a
/// product is fused if all uses of it are loose sums of its region.
/// Requires: `flow` is the function's.
Contraction find_contraction(const ptx::Function& function, const ControlFlow& flow);

/// Types that an assembler might fuse, as bits: packed ones count as their elements.
using FloatTypes = std::uint8_t;

/// Where products and sums of a function may meet, whatever the control flow.
struct LooseMeeting {
  std::uint32_t line = 0;       // of the first loose sum that a product may reach; 0: none
  FloatTypes sums = 0;          // of the loose sums
  FloatTypes products = 0;      // of the loose and hidden products
  std::uint32_t first_sum = 0;  // its line; 0: none
};
LooseMeeting find_meeting(const ptx::Function& function);

}  // namespace slate::injector
