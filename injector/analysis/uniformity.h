// Uniformity: which registers hold the same value in all threads of a block, or at least in all
// threads of a warp, and which blocks of code are therefore run by all of them together. Flow
// insensitive: one answer per register, which is close to exact on what compilers write (nearly
// every register has one definition). Errs only towards "differs".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// How far a value, or the decision to run some code, is shared.
enum class Scope : std::uint8_t {
  kBlock,       // the same in all threads of a block
  kWarpRows,    // the same in a warp, provided that no warp spans two rows of the block
  kWholeWarps,  // the same in a warp, provided that the rows of the block are whole warps
  kWarp,        // the same in a warp
  kThread,      // may differ between any two threads
};
// Joined to what differs most. kWholeWarps needs the condition of kWarpRows and more, which kWarp
// does not, so of these three that with the stronger condition stays.
Scope join(Scope a, Scope b);

class Uniformity {
 public:
  /// Who calls the function with what, and next to which threads.
  struct Surroundings {
    bool parameters_vary = false;  // they differ in every thread (of a device function)
    /// The kernel, or a function that it calls, has Trait::kHandsOver: threads may take turns, and
    /// what they load from one address may differ.
    bool takes_turns = false;
  };
  Uniformity(const ptx::Function& function, const ControlFlow& flow, Surroundings surroundings);

  Scope of(const ptx::Operand& operand) const;
  /// Who may be apart from whom while this block of code runs: kBlock if all threads run it
  /// together.
  Scope apart_in(std::uint32_t block) const { return apart_[block]; }
  /// The blocks that end in a branch which may part the lanes of a warp.
  std::vector<std::uint32_t> parting_branches() const;
  /// True if the register holds a mask of lanes found at run time (activemask, ballot, match), and
  /// every lane in it comes to the instruction `use` before it can leave.
  bool is_lane_mask(const ptx::Operand& operand, std::uint32_t use) const;
  /// A number, or a register that holds one and nothing else.
  std::optional<std::int64_t> constant(const ptx::Operand& operand) const;

 private:
  /// What a register is in terms of the thread's place in its block.
  enum class Place : std::uint8_t {
    kUnknown,
    kTidX,
    kTidY,
    kTidZ,
    kNtidX,
    kNtidY,
    kPlane,      // tid.z * ntid.y + tid.y
    kRow,        // tid.y * ntid.x + tid.x
    kRank,       // kPlane * ntid.x + tid.x: threads of a warp have the same rank / 32
    kCtaid,      // along any axis
    kLineStart,  // kCtaid * ntid.x
    kLine,       // kLineStart + tid.x: the thread's number in a line of the grid, below 2^31
    kTiles,      // kCtaid times a multiple of 32, which may overflow
    kTiled,      // kTiles + tid.x
    kZero,       // the sign of one of the above, as in signed divisions; not of the last two
  };

  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  static constexpr std::uint32_t kOften = kNever - 1;

  /// A register or another variable of the function.
  static bool is_local(const ptx::Operand& operand);
  static bool divides_warp(std::int64_t value);
  void find_definitions();
  void find_places();
  Place place_of(const ptx::Operand& operand) const;
  std::int64_t offset_made_by(const ptx::Instruction& instruction) const;
  Place place_made_by(const ptx::Instruction& instruction) const;
  Place place_shifted(const ptx::Instruction& shift) const;
  Place place_of_sum(const ptx::Operand& one, const ptx::Operand& other) const;
  Place place_of_product(const ptx::Operand& one, const ptx::Operand& other) const;
  void find_constants();
  bool names_whole_warp(const ptx::Instruction& instruction) const;
  void find_lane_masks();
  void find_uses();
  bool visit(std::uint32_t index);
  bool spread(std::uint32_t block);
  void part_values(std::uint32_t branch, const std::vector<std::uint32_t>& influenced, Scope scope);
  Scope result_of(const ptx::Instruction& instruction) const;
  Scope inputs_of(const ptx::Instruction& instruction) const;
  Scope loaded_by(const ptx::Instruction& load) const;
  static std::optional<Scope> scope_of_warps(Place place);
  std::optional<Scope> constant_per_warp(const ptx::Instruction& instruction) const;
  bool raise(const ptx::Operand& operand, Scope scope);

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Surroundings surroundings_;
  std::vector<Scope> registers_;                        // by index into Function::variables
  std::vector<std::uint32_t> definitions_;              // the same: what alone writes it
  std::vector<std::int64_t> offsets_;                   // the same: what is added to the place
  std::vector<Place> places_;                           // the same
  std::vector<std::optional<std::int64_t>> constants_;  // the same, of those written once
  std::vector<bool> lane_masks_;                        // the same
  std::vector<std::vector<std::uint32_t>> uses_;        // the same: blocks that read it
  std::vector<Scope> apart_;                            // by block
  std::vector<Scope> branches_;  // by block: scope of its last branch, as spread so far
  // Room of part_values(). By block: the last parting of which it is on some way, and on one only.
  std::vector<std::uint32_t> way_;
  std::vector<std::uint32_t> one_way_;
  std::uint32_t parting_ = 0;
};

/// The operands that an instruction writes: none, one, or both of a pair.
void for_each_result(const ptx::Instruction& instruction, auto&& use);

/// True if the result depends on nothing but the operands, and there is no other effect.
bool only_computes(const ptx::Instruction& instruction);
/// Loads of parameters and constants by name count as such: they cannot fail, and give each thread
/// of a block the same.
bool may_be_repeated(const ptx::Instruction& instruction);

/// True if operand 0 is a result.
bool has_result(const ptx::Instruction& instruction);

void for_each_result(const ptx::Instruction& instruction, auto&& use) {
  if (instruction.operands.empty() || !has_result(instruction)) return;
  const auto visit = [&](const auto& self, const ptx::Operand& operand) -> void {
    using Kind = ptx::Operand::Kind;
    if (operand.kind == Kind::kSymbol) {
      use(operand);
    } else if (operand.kind == Kind::kPair || operand.kind == Kind::kVector ||
               operand.kind == Kind::kList) {
      for (const ptx::Operand& part : operand.parts) self(self, part);
    }
  };
  visit(visit, instruction.operands[0]);
}

}  // namespace slate::injector
