// Addresses: what the registers of one function hold, as far as checks need it: a variable's
// address, another register plus a constant, and of which powers of two an address is a multiple.
// It errs only towards not knowing. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/registers.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// A variable that lies outside of the module (tabulate_variables()).
struct TabledVariable {
  std::uint64_t bytes = 0;
  std::uint32_t align = 1;
  bool is_constant = false;
};

/// The row of the table of variables whose address the instruction loads.
std::optional<std::uint64_t> table_row(const ptx::Instruction& instruction,
                                       std::span<const TabledVariable> tabled);

/// A register or a variable, plus a constant.
struct Place {
  const ptx::Operand* base = nullptr;     // names the register or the variable
  std::optional<std::uint32_t> number{};  // number of the register; none: a variable
  std::int64_t offset = 0;
  bool is_generic = false;  // whether a variable's address was made generic
};

/// What is known of a value's last bits: it is `rest`, plus the parameter that `origin` stands for
/// if there is one, modulo 2^bits.
struct Residue {
  static constexpr std::uint32_t kMostBits = 12;
  static constexpr std::uint32_t kNoOrigin = ~std::uint32_t{0};

  std::uint32_t bits = 0;
  std::uint32_t rest = 0;
  std::uint32_t origin = kNoOrigin;

  bool operator==(const Residue&) const = default;
  std::uint32_t mask() const { return (1u << bits) - 1; }
};

/// A register, and the instruction that reads it.
struct ReadRegister {
  std::uint32_t number = 0;
  std::uint32_t reader = 0;
};

/// Whether the instruction loads 8 bytes of a parameter of the kernel, by its name.
bool loads_parameter(const ptx::Function& function, const ptx::Instruction& instruction);

/// The variable that the operand names; null: none of the module or function.
const ptx::Variable* variable_named(const ptx::Module& module, const ptx::Function& function,
                                    const ptx::Operand& operand);

/// A number that an instruction adds to what an operand names.
struct AddedNumber {
  const ptx::Operand* to = nullptr;
  std::int64_t number = 0;
};

/// Of an addition or subtraction of a number up to 2^32. Its type, guard and modifiers are not
/// looked at.
std::optional<AddedNumber> number_added(const ptx::Instruction& instruction);

/// Whether an instruction computes a whole number of so many bytes, as all its bits are.
bool computes_whole(const ptx::Instruction& instruction, std::uint32_t bytes);

class Addresses {
 public:
  /// `tabled`: variables outside of the module, in their table's order. Requires: the arguments
  /// outlive it.
  Addresses(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
            const Registers& registers, std::span<const TabledVariable> tabled = {});

  /// Where the operand in brackets of instruction `at` leads, traced back to the first register
  /// that the same thread wrote once, before. Requires: it has one part.
  Place trace(const ptx::Operand& address, std::uint32_t at) const;
  /// The last bits of a register or a variable's address.
  Residue residue(const Place& place) const;
  /// As the function of that name.
  std::optional<std::uint64_t> table_row(const ptx::Instruction& instruction) const {
    return injector::table_row(instruction, tabled_);
  }
  /// The variable from whose address the register was computed, if it seems to be only one: its
  /// name, or the operand in brackets that gives its row of the table.
  const ptx::Operand* variable_behind(const Place& place) const;
  /// The load that gives an origin's parameter, a text such as "ld.param.u64 ... [name+8]".
  const ptx::Instruction& origin(std::uint32_t number) const { return *origins_[number]; }
  /// Whether the register is written by one instruction only, not under a predicate.
  bool is_written_once(std::uint32_t number) const { return definitions_[number] < kOften; }
  /// Whether some instruction may read it before it is written. Requires: is_written_once(number).
  bool is_read_early(std::uint32_t number) const { return read_early_[number]; }
  /// Whether instruction `first` is passed on every way to `second`.
  bool dominates(std::uint32_t first, std::uint32_t second) const;
  /// Whether block `above` is passed on every way to block `below`, or is that block.
  bool is_above(std::uint32_t above, std::uint32_t below) const {
    return entered_[above] <= entered_[below] && left_[below] <= left_[above];
  }
  /// The last block that is passed on every way to both blocks; 0 where nothing comes to one.
  std::uint32_t common_dominator(std::uint32_t a, std::uint32_t b) const;
  /// Requires: is_written_once(number).
  std::uint32_t definition(std::uint32_t number) const { return definitions_[number]; }
  const std::vector<std::uint32_t>& dominators() const { return dominators_; }
  /// The register of 32 bits that was made one of 64, whose lower half the register is that
  /// instruction `at` reads.
  std::optional<ReadRegister> behind_widening(std::uint32_t number, std::uint32_t at) const;

 private:
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  static constexpr std::uint32_t kOften = kNever - 1;
  static constexpr std::int64_t kMostOffset = std::int64_t{1} << 30;

  void number_dominators();
  void find_definitions();
  void find_undefined();
  void find_early_reads();
  void find_origins();
  void find_residues();
  std::optional<Place> step(const Place& place, std::uint32_t at) const;
  std::optional<ReadRegister> converted(std::uint32_t number, std::uint32_t at, unsigned from,
                                        unsigned to) const;
  const ptx::Variable* variable(const ptx::Operand& operand) const;
  std::optional<Residue> value_of(const ptx::Operand& operand) const;
  std::optional<Residue> made_by(const ptx::Instruction& instruction) const;
  std::optional<Residue> linear(const ptx::Instruction& instruction) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const std::span<const TabledVariable> tabled_;
  std::vector<std::uint32_t> definitions_;        // by register: the instruction that writes it
  std::vector<std::optional<Residue>> residues_;  // by register; none: never written so far
  std::vector<const ptx::Operand*> variables_;    // by register
  std::vector<const ptx::Instruction*> origins_;  // loads of parameters
  std::vector<std::uint32_t> dominators_;         // by block
  std::vector<bool> read_early_;                  // by register
  // By block: when a walk through the tree of dominators came to it, and left it.
  std::vector<std::uint32_t> entered_, left_;
};

}  // namespace slate::injector
