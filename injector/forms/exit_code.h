// ExitCode: copies of the code between a branch of a kernel and its end, for threads that do not
// end there (late_exits.h). Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/mentions.h"
#include "injector/ptx/module.h"

namespace slate::injector {

class ExitCode {
 public:
  /// Requires: the arguments outlive it.
  ExitCode(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
           const Mentions& mentions)
      : module_(module), function_(function), flow_(flow), mentions_(mentions) {}

  /// The code from `block` on, with every instruction that other threads would notice under
  /// `guard`, a template of a predicate; empty if there is only the end. Returns nullopt unless it
  /// is a few plain instructions in a row, which may stand in place of the instruction `at`.
  std::optional<std::string> guarded(std::uint32_t block, std::string_view guard,
                                     std::uint32_t at) const;

  /// A copy of the code from `block` on. It begins with the label `name`; every path through it
  /// ends with a jump to `name`_out. Returns nullopt if it cannot stand elsewhere, or if all copies
  /// together become too long.
  std::optional<std::string> copy(std::uint32_t block, const std::string& name);

  /// The block that a branch leads to; ControlFlow::kNone: the end.
  std::uint32_t target_of(const ptx::Instruction& branch) const;
  /// Whether the block does nothing but end.
  bool only_leaves(std::uint32_t block) const;

 private:
  std::string_view text_of(ptx::Span span) const;
  std::uint32_t behind(std::uint32_t block) const;
  bool is_plain(std::uint32_t instruction) const;
  bool is_declared_at(const ptx::Instruction& instruction, std::uint32_t at) const;
  std::vector<std::uint32_t> blocks_from(std::uint32_t block) const;
  std::optional<std::string> copy_of_block(std::uint32_t number, const std::string& name,
                                           bool next_follows);
  std::optional<std::string> copy_of(const ptx::Instruction& instruction,
                                     const std::string& name) const;
  bool jumps_inside(const ptx::InnerScope& scope) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Mentions& mentions_;
  std::size_t copied_ = 0;  // instructions copied so far
};

}  // namespace slate::injector
