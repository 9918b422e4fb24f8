// UndefinedWalk: the second, exact part of undefined.h. It follows the paths through a function on
// which registers are not written yet, with the known values of predicates there. Private to
// undefined.cc. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "injector/analysis/branches.h"
#include "injector/analysis/control_flow.h"
#include "injector/analysis/predicate_groups.h"
#include "injector/analysis/register_accesses.h"
#include "injector/analysis/register_list.h"
#include "injector/analysis/registers.h"
#include "injector/analysis/small_values.h"
#include "injector/analysis/tracked_flags.h"
#include "injector/analysis/undefined.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Walks for one register at a time, with the registers that its value flows on to. Of paths that
/// meet with the same facts, one goes on, with all that is undefined on either. The facts are
/// values of TrackedFlags. Many functions and members: it is one algorithm, with its steps and
/// tables.
class UndefinedWalk {
 public:
  /// Requires: the arguments outlive it.
  UndefinedWalk(const ptx::Function& function, const ControlFlow& flow, const Registers& registers,
                Effort& effort);

  /// The effect of a register that may be read before it is written, if there is one. The number
  /// behind the last register is the carry flag.
  std::optional<UndefinedRead> find(std::uint32_t exposed);

 private:
  using List = std::vector<std::uint32_t>;
  /// What is known of a thread at some place.
  struct State {
    List facts;                   // values of flags: kSmallValues * register + value, in order
    std::vector<bool> undefined;  // for each suspect, whether it may be undefined
    /// For each tracked flag, whether its comparison may no longer hold.
    std::vector<bool> stale;
  };
  using Key = std::pair<std::uint32_t, List>;  // block, facts
  struct Part {
    State state;
    std::size_t next = 0;  // index into the block's interesting instructions
  };

  void find_suspects(std::uint32_t exposed);
  std::optional<UndefinedRead> walk(std::uint32_t exposed);
  void find_interesting();
  bool is_live(std::uint32_t flag, std::uint32_t block);

  void enter(std::uint32_t block, State state);
  void visit(std::uint32_t block, State state);
  void leave(std::uint32_t number, State state);
  void take_either_way(std::uint32_t number, std::uint32_t guard, State state);

  void run(std::uint32_t index, Part& part);
  void write(std::uint32_t r, MaybeSmall value, bool surely, State& state);
  void split(Part& part, std::uint32_t predicate, bool value, bool again = false);
  void choose(const ptx::Instruction& selp, Part& part);
  void forget_choice(const ptx::Instruction& selp, State& state) const;
  bool is_undefined(std::uint32_t r, const State& state) const;
  bool is_undefined(const ptx::Operand& operand, const State& state) const;
  std::optional<std::uint32_t> undefined_input(const ptx::Instruction& instruction,
                                               const State& state) const;

  MaybeSmall fact(const State& state, std::uint32_t r) const;
  MaybeSmall value_of(const ptx::Operand& operand, const State& state) const;
  MaybeSmall made_by(const ptx::Instruction& instruction, const State& state) const;
  MaybeSmall selected_by(const ptx::Instruction& selp, const State& state) const;
  MaybeSmall comparison_made_by(const ptx::Instruction& setp, const State& state) const;

  void demand(std::uint32_t r, std::uint32_t index, const State& state);
  void demand_inputs(std::uint32_t index, const State& state);
  UndefinedRead origin_of(std::uint32_t r, std::uint32_t reader);
  bool is_surely_undefined(std::uint32_t r, std::uint32_t reader);

  // Tables of the function.
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const Registers& registers_;
  const PredicateGroups predicate_groups_;
  const RegisterAccesses accesses_;
  RegisterLiveness liveness_;
  Effort& effort_;
  const std::uint32_t carry_;
  const RegisterUses uses_;
  std::vector<List> compared_;  // for each register the groups of conditions that it is an input of
  Branches branches_;
  std::map<std::uint32_t, std::vector<bool>> live_;                 // by flag, then by block
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> surely_;  // by register and reader
  // Tables of the present register.
  TrackedFlags tracked_;
  RegisterList suspects_;
  std::vector<List> interesting_;                      // instructions by block
  List touched_;                                       // blocks with interesting instructions
  std::vector<std::optional<UndefinedRead>> origins_;  // for each suspect, where its value is from
  std::map<Key, std::pair<std::vector<bool>, std::vector<bool>>> states_;  // undefined and stale
  std::set<Key> waiting_;
  std::vector<Part> parts_;
  std::optional<UndefinedRead> found_;
  std::uint32_t found_at_ = 0;  // the instruction that makes something of it
};

}  // namespace slate::injector
