// RegisterWrites: which instructions write the registers of one function, and which of these may be
// the last one before a place. Requires: the arguments outlive it. Immutable once built, but
// queries of ControlFlow share memory. Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/registers.h"

namespace slate::injector {

/// Whether a way leads from one block to another that does not pass `around`.
bool leads(const ControlFlow& flow, std::uint32_t from, std::uint32_t to, std::uint32_t around);

class RegisterWrites {
 public:
  RegisterWrites(const ptx::Function& function, const ControlFlow& flow,
                 const Registers& registers);

  /// The instructions that write the register, rising.
  const std::vector<std::uint32_t>& of(std::uint32_t number) const { return writes_[number]; }
  bool writes(std::uint32_t instruction, std::uint32_t number) const {
    return std::ranges::binary_search(writes_[number], instruction);
  }
  /// Those that may be the last one before instruction `at`.
  std::vector<std::uint32_t> reaching(std::uint32_t number, std::uint32_t at) const;
  /// Where in the block of instruction `at` the register gets the number that it has at `at`.
  std::uint32_t begin_of(std::uint32_t number, std::uint32_t at) const;
  /// Whether the register at `at` is what it was at instruction `from` when that was last carried
  /// out. Requires: `from` dominates `at`.
  bool is_unchanged(std::uint32_t number, std::uint32_t from, std::uint32_t at) const;
  /// Whether the register was written on every way to instruction `at`.
  bool is_surely_written(std::uint32_t number, std::uint32_t at) const;
  /// Whether a thread may carry out the instruction more than once.
  bool may_repeat(std::uint32_t instruction) const;

  const std::vector<std::uint32_t>& predecessors(std::uint32_t block) const {
    return predecessors_[block];
  }
  /// Goes backwards from instruction `at` on every way, until `stop` says of an instruction that
  /// the way ends there.
  template <typename Stop>
  void walk_back(std::uint32_t at, const Stop& stop) const {
    Walk<Stop> walk{*this, stop};
    walk.from(flow_.block_of(at), at);
    walk.rest();
  }
  /// The same from the ends of these blocks.
  template <typename Stop>
  void walk_back_from(const std::vector<std::uint32_t>& blocks, const Stop& stop) const {
    Walk<Stop> walk{*this, stop};
    for (const std::uint32_t block : blocks) walk.visit(block);
    walk.rest();
  }

 private:
  template <typename Stop>
  struct Walk {
    const RegisterWrites& writes;
    const Stop& stop;
    std::vector<bool> seen = std::vector<bool>(writes.flow_.blocks().size(), false);
    std::vector<std::uint32_t> waiting{};

    void visit(std::uint32_t block) {
      if (!seen[block]) waiting.push_back(block);
      seen[block] = true;
    }
    void from(std::uint32_t block, std::uint32_t end) {
      for (std::uint32_t i = end; i-- > writes.flow_.blocks()[block].first;) {
        if (stop(i)) return;
      }
      for (const std::uint32_t before : writes.predecessors_[block]) visit(before);
    }
    void rest() {
      while (!waiting.empty()) {
        const std::uint32_t block = waiting.back();
        waiting.pop_back();
        from(block, writes.flow_.blocks()[block].end);
      }
    }
  };

  const ptx::Function& function_;
  const ControlFlow& flow_;
  const std::vector<std::vector<std::uint32_t>> predecessors_;  // by block
  std::vector<std::vector<std::uint32_t>> writes_;              // by register
};

}  // namespace slate::injector
