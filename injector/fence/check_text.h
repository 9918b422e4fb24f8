// The PTX of checks. In front of each site stands a fast path: a few instructions that let pass
// what is surely allowed. Behind a branch stands the exact path, which looks at every access of the
// site by itself, in the fence table where need be. It comes back, or goes to the function's
// ending (ending.h). Pure functions on values. Thread: any.
//
// Registers, all with the prefix ~f: ~fp, ~fq, ~fr (predicates); ~fodd (a parameter is less aligned
// than what is computed from it); ~fa (address), ~fn (bytes), ~fw (flags), ~fv (line), ~fk (kind of
// violation) as the ending wants them; the others are scratch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injector/fence/plan.h"
#include "injector/ptx/module.h"

namespace slate::injector {

inline constexpr std::string_view kFenceConstants = "__slate_fence";
inline constexpr std::string_view kAccessTable = "__slate_accesses";
/// In shared memory, where functions are called: generic address of the worker's parameters or 0
/// (u64), shared address of its words or all ones (u32), address and bytes of the kernel's local
/// memory (u64 each).
inline constexpr std::string_view kBlockFacts = "__slate_fence_block";
inline constexpr std::uint32_t kBlockFactsBytes = 32;
inline constexpr std::string_view kCheckRegisters =
    "\n\t.reg .pred ~fp, ~fq, ~fr, ~fodd;\n\t.reg .b32 ~fb, ~fc, ~fd, ~fk, ~fi, ~fn, ~fv, ~fw;\n"
    "\t.reg .b64 ~fa, ~fl, ~fo, ~fs, ~ft, ~fz;\n";

/// Label of the ending, which wants ~fa, ~fn, ~fw, ~fv and ~fk.
inline constexpr std::string_view kEnding = "$__slate_fending";
/// Label in front of it, where ~fi is a row of kAccessTable instead; ~fn: bytes if not 0.
inline constexpr std::string_view kRowEnding = "$__slate_frow";

/// Shared words of slate's own that a program must not touch.
struct OwnWords {
  std::string name;
  std::uint64_t bytes = 0;
};

/// What a function's checks depend on besides the function.
struct Surroundings {
  std::vector<OwnWords> own;
  bool knows_words = false;       // whether kBlockFacts has the worker's words
  bool reads_parameters = false;  // whether parameters may be read by generic addresses
  bool has_dynamic = false;       // whether it names shared memory of unknown size
  bool has_static = false;        // whether it names shared memory of known size
  std::uint32_t reserved_shared = 0;
};

class CheckText {
 public:
  /// Rows of kAccessTable are added to `table`. Requires: the arguments outlive it.
  CheckText(const ptx::Module& module, const ptx::Function& function,
            const Surroundings& surroundings, std::vector<std::string>& table)
      : module_(module), function_(function), surroundings_(surroundings), table_(table) {}

  /// Before all else: sets ~fodd.
  static std::string look_at_parameters(const Plan& plan);
  std::string site(const Site& site);
  /// In front of a loop: sets the predicate that its sites look at.
  std::string hoisted(const HoistedChecks& checks) const;
  static std::string hoisted_register(std::uint32_t loop);
  /// In front of a hint, with a label to put behind it.
  std::string hint(const ptx::Instruction& instruction, const Access& access, std::string& label);
  std::string handle(const ptx::Instruction& instruction, const ptx::Operand& handle);
  std::string jump(const ptx::Instruction& branch);
  std::string barrier(const ptx::Instruction& instruction, const Effect& effect);
  /// In place of an instruction that ends its thread.
  std::string end(const ptx::Instruction& instruction, Violation kind);

 private:
  /// One exact path: the beginning of its labels, and the number of bytes, which is a register or
  /// a constant.
  struct Exact {
    std::string label;
    std::string bytes;
  };

  std::string fast(const Member& member, bool is_first) const;
  std::string fast_range(const Member& member, std::string_view result) const;
  std::string fast_global(const Member& member, std::string_view result) const;
  std::string fast_shared(const Member& member, std::string_view result) const;
  std::string fast_variable(const Member& member, std::string_view result) const;
  std::string alignment(const Member& member, std::string_view result) const;
  std::string size_of(const Access& access) const;
  std::string exact(const Member& member, std::string_view label);
  std::string exact_size(const Access& access, std::string_view label) const;
  std::string exact_space(MemorySpace space, const Exact& here) const;
  std::string exact_shared(const Exact& here) const;
  std::string exact_variables(ptx::Space space, const Exact& here) const;
  std::string parameters(const Exact& here) const;
  std::string next_label();
  std::string base_of(const Member& member, std::string& prepare) const;
  bool is_narrow(const Member& member) const;
  std::uint64_t variable_bytes(const Member& member, ptx::Space space) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Surroundings& surroundings_;
  std::vector<std::string>& table_;
  std::uint32_t labels_ = 0;
};

}  // namespace slate::injector
