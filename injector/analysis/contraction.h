// Contraction: where an assembler may make one fused multiply-add, which rounds once, of a
// multiplication and an addition, which round twice. PTX allows it for a product and a sum that
// name no rounding. The assembler chooses, and another text around them can change its choice.
// Rules and evidence: "Bits" in docs/injector.md.
//
// Pure functions, linear in the instructions. Thread: any.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The type of an addition or subtraction without a rounding: "f32", "f16x2"; empty: it is none.
/// "mixed" if operands and result differ in type.
std::string_view loose_sum(const ptx::Instruction& instruction);
/// As loose_sum(), for a multiplication.
std::string_view loose_product(const ptx::Instruction& instruction);
/// As loose_sum(), for an approximation whose last step in machine code is a loose multiplication.
std::string_view hidden_product(const ptx::Instruction& instruction);

/// A product and a sum of it that ptxas makes one instruction.
struct Fusion {
  std::uint32_t product = 0;  // index of an instruction
  std::uint32_t sum = 0;      // index of another instruction, of the same region
  std::uint32_t operand = 0;  // operand of the sum that is the product: 1 or 2
  bool negated = false;       // whether a `neg` stands between them
  bool only = false;          // whether nothing but such sums reads the product
};

/// The fusions of one function.
struct Contraction {
  std::vector<Fusion> fusions;  // ordered by the sum, in text order within a region
  /// Fusions that no text can express: of a hidden product, or of one whose operands are
  /// overwritten.
  std::vector<Fusion> open;
};

/// What ptxas makes of the function. It decides for each region of straight code by itself: a
/// product is fused if all its uses are loose sums of its region. Requires: `flow` is the
/// function's.
Contraction find_contraction(const ptx::Function& function, const ControlFlow& flow);

/// Types that an assembler might fuse, as bits. A packed type counts as its elements.
using FloatTypes = std::uint8_t;

/// Where products and sums of a function may meet, whatever the control flow.
struct LooseMeeting {
  std::uint32_t line = 0;       // line of the first loose sum that a product may reach; 0: none
  FloatTypes sums = 0;          // types of the loose sums
  FloatTypes products = 0;      // types of the loose and hidden products
  std::uint32_t first_sum = 0;  // line of the first loose sum; 0: none
};
LooseMeeting find_meeting(const ptx::Function& function);

}  // namespace slate::injector
