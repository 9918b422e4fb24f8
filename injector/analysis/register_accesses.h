// RegisterUses: which instructions of a function read and write each register.
// RegisterAccesses: in which blocks each register is read and written.
// RegisterLiveness: in which blocks its value on entry may still be read. Thread: one at a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/predicate_groups.h"
#include "injector/analysis/registers.h"

namespace slate::injector {

/// Whether values that the instruction reads go into its result only. The carry flag is a result,
/// too, which only such instructions read.
bool passes_on(const ptx::Instruction& instruction);
/// Whether it writes, or reads, the carry flag.
bool sets_carry(const ptx::Instruction& instruction);
bool reads_carry(const ptx::Instruction& instruction);
/// Calls `use` with the number of each register that the instruction writes; registers.count() is
/// the carry flag.
void for_each_written(const Registers& registers, const ptx::Instruction& instruction, auto&& use) {
  registers.for_each_write(instruction, use);
  if (sets_carry(instruction)) use(registers.count());
}

/// The carry flag is the last register.
class RegisterUses {
 public:
  using List = std::vector<std::uint32_t>;  // indices of instructions, in order

  RegisterUses(const ptx::Function& function, const Registers& registers);

  /// A guard is read, too.
  const List& reads(std::uint32_t r) const { return reads_[r]; }
  const List& writes(std::uint32_t r) const { return writes_[r]; }

 private:
  std::vector<List> reads_, writes_;  // by register
};

/// For each register the blocks that read it before they write it, and the blocks that write it.
/// The carry flag is the last register.
class RegisterAccesses {
 public:
  /// With `groups`, a comparison counts as a read of all predicates that may say the same.
  RegisterAccesses(const ptx::Function& function, const ControlFlow& flow,
                   const Registers& registers, const PredicateGroups* groups = nullptr);

  std::uint32_t count() const { return static_cast<std::uint32_t>(reading_.size()); }
  std::uint32_t carry() const { return count() - 1; }
  const std::vector<std::uint32_t>& reading(std::uint32_t r) const { return reading_[r]; }
  /// Blocks that write the register in any case, not under a predicate.
  const std::vector<std::uint32_t>& writing(std::uint32_t r) const { return writing_[r]; }

 private:
  /// Records the accesses of one instruction.
  void look_at(const ptx::Instruction& instruction, std::uint32_t block);
  void read(std::uint32_t r, std::uint32_t block);
  void write(std::uint32_t r, std::uint32_t block);

  const Registers& registers_;
  const PredicateGroups* predicate_groups_;
  std::vector<std::vector<std::uint32_t>> reading_;  // blocks by register
  std::vector<std::vector<std::uint32_t>> writing_;  // blocks by register
  std::vector<std::uint32_t> written_in_;            // last block that wrote each register
};

/// The blocks at whose beginning a register is live, one register at a time. The work is the sum of
/// all paths between its writes and reads.
class RegisterLiveness {
 public:
  RegisterLiveness(const ControlFlow& flow, const RegisterAccesses& accesses, Effort& effort)
      : accesses_(accesses),
        effort_(effort),
        predecessors_(flow.predecessors()),
        writes_(flow.blocks().size(), 0),
        seen_(flow.blocks().size(), 0) {}

  /// Calls `use` with each block at whose beginning the register is live; incomplete where the
  /// effort is spent.
  void for_each_block(std::uint32_t r, auto&& use) {
    ++question_;
    for (const std::uint32_t b : accesses_.writing(r)) writes_[b] = question_;
    waiting_.clear();
    for (const std::uint32_t b : accesses_.reading(r)) visit(b);
    while (!waiting_.empty()) {
      const std::uint32_t b = waiting_.back();
      waiting_.pop_back();
      use(b);
      if (!effort_.take(1 + predecessors_[b].size())) return;
      for (const std::uint32_t before : predecessors_[b]) {
        if (writes_[before] != question_) visit(before);
      }
    }
  }

  /// Whether it is live where the function begins; true where the effort is spent.
  bool is_live_at_beginning(std::uint32_t r) {
    bool is_live = false;
    if (!effort_.is_spent()) for_each_block(r, [&](std::uint32_t block) { is_live |= block == 0; });
    return is_live || effort_.is_spent();
  }

 private:
  void visit(std::uint32_t b) {
    if (std::exchange(seen_[b], question_) != question_) waiting_.push_back(b);
  }

  const RegisterAccesses& accesses_;
  Effort& effort_;
  const std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<std::uint32_t> writes_;  // last query whose register each block writes
  std::vector<std::uint32_t> seen_;    // last query that visited each block
  std::vector<std::uint32_t> waiting_;
  std::uint32_t question_ = 0;
};

}  // namespace slate::injector
