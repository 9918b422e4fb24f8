// Uniformity: which registers hold the same value in all threads of a block, or in all threads of a
// warp, and which blocks of code all of them therefore run together. Flow insensitive: one answer
// for each register, which is close to exact for code of compilers, where nearly every register has
// one definition. It errs only towards "differs". Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// How far a value, or the decision to run some code, is shared.
enum class Scope : std::uint8_t {
  kBlock,       // same in all threads of a block
  kWarpRows,    // same in a warp, if no warp spans two rows of the block
  kWholeWarps,  // same in a warp, if the rows of the block are whole warps
  kWarp,        // same in a warp
  kThread,      // may differ between any two threads
};
/// The scope of what depends on both: the one that differs most. kWholeWarps needs the condition of
/// kWarpRows and more, and kWarp needs none. So of these three the one with the stronger condition
/// stays.
Scope join(Scope a, Scope b);

class Uniformity {
 public:
  /// How the function is called, and beside which threads.
  struct Surroundings {
    /// Whether parameters differ in every thread (of a device function)
    bool parameters_vary = false;
    /// Whether the kernel, or a function that it calls, has Trait::kHandsOver: threads may then
    /// take turns, and loads from one address may differ.
    bool takes_turns = false;
  };
  Uniformity(const ptx::Function& function, const ControlFlow& flow, Surroundings surroundings);

  Scope of(const ptx::Operand& operand) const;
  /// How far threads may be apart while this block of code runs: kBlock if all threads run it
  /// together.
  Scope apart_in(std::uint32_t block) const { return apart_[block]; }
  /// The blocks that end in a branch which may part the lanes of a warp.
  std::vector<std::uint32_t> parting_branches() const;
  /// Whether the register holds a mask of lanes found at run time (activemask, ballot, match), and
  /// every lane in it comes to the instruction `use` before it can leave.
  bool is_lane_mask(const ptx::Operand& operand, std::uint32_t use) const;
  /// The value of a number, or of a register that holds one number only.
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
    kZero,       // sign of one of the above, as in signed divisions; not of the last two
  };

  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  static constexpr std::uint32_t kOften = kNever - 1;

  /// Whether it is a register or another variable of the function.
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
  std::vector<Scope> registers_;            // by index into Function::variables, like the next six
  std::vector<std::uint32_t> definitions_;  // only instruction that writes it
  std::vector<std::int64_t> offsets_;       // added to its place
  std::vector<Place> places_;
  std::vector<std::optional<std::int64_t>> constants_;  // of registers written once
  std::vector<bool> lane_masks_;
  std::vector<std::vector<std::uint32_t>> uses_;  // blocks that read it
  std::vector<Scope> apart_;                      // by block
  std::vector<Scope> branches_;  // scope of each block's last branch, as spread so far
  // Scratch memory of part_values(). For each block the last parting of which it is on some path,
  // and on one path only.
  std::vector<std::uint32_t> way_;
  std::vector<std::uint32_t> one_way_;
  std::uint32_t parting_ = 0;
};

/// Calls `use` with the operands that an instruction writes: none, one, or both of a pair.
void for_each_result(const ptx::Instruction& instruction, auto&& use);

/// Whether the result depends on nothing but the operands, and there is no other effect.
bool only_computes(const ptx::Instruction& instruction);
/// As only_computes(), but loads of parameters and constants by name count too: they cannot fail,
/// and give each thread of a block the same.
bool may_be_repeated(const ptx::Instruction& instruction);

/// Whether operand 0 is a result.
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
