// Rehearsal: what the threads of one block do in shared memory, found by carrying out the kernel's
// integer arithmetic for each of them, with the block's size. All else is unknown: parameters, the
// block's index, what is loaded. At a branch on something unknown both ways are gone. It errs only
// towards not knowing. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/fence/accesses.h"
#include "injector/fence/thread_step.h"

namespace slate::injector {

/// What all threads do at one instruction.
struct Rehearsed {
  bool is_reached = false;   // whether some thread may come to the instruction
  bool is_in_front = false;  // whether one may come there in front of its first barrier
  /// Whether each access to shared memory, or by a generic address, is aligned and within one of
  /// `variables`.
  bool is_within = true;
  std::vector<std::uint32_t> variables{};  // indices into SharedVariables::all()
};

/// Bytes [first, end) of a variable, by its index into SharedVariables::all().
struct SharedRange {
  std::uint32_t variable = 0;
  std::uint64_t first = 0, end = 0;
};

/// Bytes that a thread may store to in front of its first barrier.
struct FirstStore {
  std::uint32_t thread = 0;  // its number in the block
  SharedRange bytes;
};

/// Whether the instruction does nothing with memory but store to one place, at once.
bool only_stores(const ptx::Instruction& instruction, const InstructionEffect& effect);

class Rehearsal {
 public:
  /// `effects`: by instruction. Requires: the block has 1 to 1024 threads.
  Rehearsal(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
            const SharedVariables& variables, std::span<const InstructionEffect> effects,
            const ThreadStep::Index& block);

  /// Whether all threads were followed to their end. Otherwise nothing else here is true.
  bool is_complete() const { return is_complete_; }
  const Rehearsed& at(std::uint32_t instruction) const { return rehearsed_[instruction]; }
  /// Whether the first barrier of each thread waits for the whole block, so that no thread has
  /// passed one before all that have not ended come to their first.
  bool meets_first() const { return meets_first_; }
  /// What threads may store in front of their first barrier, where it is known.
  const std::vector<FirstStore>& first_stores() const { return first_stores_; }
  /// Whether a thread may end by its own code in front of its first barrier.
  bool may_end_first() const { return may_end_first_; }
  /// Whether the byte is surely stored to by some thread in front of its first barrier, if the
  /// fence ends none there.
  bool is_filled(std::uint32_t variable, std::uint64_t byte) const {
    return filled_[variable][byte];
  }
  /// Whether an access reads the byte, of those that are Rehearsed::is_within.
  bool is_read(std::uint32_t variable, std::uint64_t byte) const { return read_[variable][byte]; }

 private:
  friend class Rehearser;

  bool is_complete_ = false;
  bool meets_first_ = true;
  bool may_end_first_ = false;
  std::vector<Rehearsed> rehearsed_;  // by instruction
  std::vector<FirstStore> first_stores_;
  // By variable and byte.
  std::vector<std::vector<bool>> filled_, read_;
};

}  // namespace slate::injector
