// The PTX of checks. In front of each site stands a fast path: a few instructions that let pass
// what is surely allowed. Behind a branch stands the exact path, which looks at every access of the
// site by itself, in the fence table where need be. It comes back, or goes to the function's
// ending (ending.h). Pure functions on values. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injector/fence/ending.h"
#include "injector/fence/member_text.h"
#include "injector/fence/plan.h"
#include "injector/fence/whole_warps.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// How threads of one function end.
struct Ending {
  EndingKind kind = EndingKind::kPlain;
  std::uint32_t number = 0;  // of the function, for the record
  bool is_in_place = false;  // whether each check has an ending of its own
};

class CheckText {
 public:
  /// Rows of kAccessTable are added to `table`. Requires: the arguments outlive it.
  CheckText(const ptx::Module& module, const ptx::Function& function,
            const Surroundings& surroundings, const Ending& ending, std::vector<std::string>& table)
      : module_(module),
        function_(function),
        surroundings_(surroundings),
        members_(module, function, surroundings),
        ending_(ending),
        table_(table) {}

  /// Before all else: sets ~fodd.
  static std::string look_at_parameters(const Plan& plan);
  /// In front of the checks that look at it: sets the register of the limit.
  static std::string limit(const ElementLimit& limit, std::uint32_t number);
  /// The same of a limit that the launch passes.
  static std::string passed_limit(std::uint32_t number);
  std::string site(const Site& site);
  /// In front of a loop: sets the predicate that its sites look at.
  std::string hoisted(const HoistedChecks& checks) const;
  static std::string hoisted_register(std::uint32_t loop);
  /// In front of a hint, with a label to put behind it.
  std::string hint(const ptx::Instruction& instruction, const Access& access, std::string& label);
  std::string handle(const ptx::Instruction& instruction, const ptx::Operand& handle);
  std::string jump(const ptx::Instruction& branch);
  std::string barrier(const ptx::Instruction& instruction, const InstructionEffect& effect);
  /// In front of a matrix instruction.
  std::string warp(const WarpLook& look);
  /// At the beginning of the loop: now and then a look whether a thread of the session was ended.
  std::string look(const Wait& wait);
  /// In place of an instruction that ends its thread.
  std::string end(const ptx::Instruction& instruction, Violation kind);

 private:
  /// One exact path: the beginning of its labels, and the number of bytes, which is a register or
  /// a constant.
  struct Exact {
    std::string label;
    std::string bytes;
  };

  bool fails_with_fast_path(const Member& member) const;
  std::string exact(const Member& member, std::string_view label);
  std::string exact_size(const Access& access, std::string_view label) const;
  std::string exact_space(MemorySpace space, const Exact& here) const;
  std::string exact_shared(const Exact& here) const;
  std::string exact_variables(ptx::Space space, const Exact& here) const;
  std::string parameters(const Exact& here) const;
  std::string next_label();
  std::string fail_by(Violation kind, std::uint32_t line);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Surroundings& surroundings_;
  const MemberText members_;
  const Ending ending_;
  std::vector<std::string>& table_;
  std::uint32_t labels_ = 0;
  std::uint32_t endings_ = 0;
  // Of the site that is being written.
  std::uint32_t at_ = 0;     // instruction
  std::string site_ending_;  // label where ~fi is a row of kAccessTable
};

}  // namespace slate::injector
