// MemberText: the fast path of one member of a site, a few instructions that set a predicate where
// the exact path is needed. And what all texts of the fence share. Pure functions on values.
// Thread: any.
//
// Registers, all with the prefix ~f: ~fp, ~fq, ~fr (predicates); ~fodd (a parameter is less aligned
// than what is computed from it); ~fa (address), ~fn (bytes), ~fw (flags), ~fv (line), ~fk (kind of
// violation) as the ending wants them; the others are scratch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "injector/fence/plan.h"
#include "injector/ptx/module.h"

namespace slate::injector {

inline constexpr std::string_view kFenceConstants = "__slate_fence";
inline constexpr std::string_view kAccessTable = "__slate_accesses";
/// Parameter of a bounded copy, behind the kernel's own: the limits that the launch passes.
inline constexpr std::string_view kPassedLimits = "__slate_limits";
/// In shared memory, where functions are called: generic address of the worker's parameters or 0
/// (u64), shared address of its words or all ones (u32), address and bytes of the kernel's local
/// memory (u64 each).
inline constexpr std::string_view kBlockFacts = "__slate_fence_block";
inline constexpr std::uint32_t kBlockFactsBytes = 32;
inline constexpr std::string_view kCheckRegisters =
    "\n\t.reg .pred ~fp, ~fq, ~fr, ~fodd;\n\t.reg .b32 ~fb, ~fc, ~fd, ~fk, ~fi, ~fn, ~fv, ~fw, "
    "~ftotal;\n"
    "\t.reg .b64 ~fa, ~fl, ~fo, ~fs, ~ft, ~fz;\n";

/// Counts the turns of loops that may wait for others, in functions that have some.
inline constexpr std::string_view kTurnRegister = "~fturns";

/// Label of the ending, which wants ~fa, ~fn, ~fw, ~fv and ~fk.
inline constexpr std::string_view kEnding = "$__slate_fending";
/// Label behind its record, for a thread that ends because another one did.
inline constexpr std::string_view kQuietEnding = "$__slate_fquiet";
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
  std::span<const TabledVariable> tabled{};  // as PlanOptions::tabled
  /// Shared variables whose addresses are in registers; see shared_register().
  std::vector<std::string_view> shared{};

  /// Whether some of the block's shared memory is slate's.
  bool has_own_shared() const { return !own.empty() || knows_words; }
};

/// Register with the bytes of shared memory that the block has; see total_shared_text().
inline constexpr std::string_view kTotalShared = "~ftotal";
/// Sets kTotalShared, for the beginning of a function whose checks look at it. Reading the special
/// register takes as long as several checks.
std::string total_shared_text(std::uint32_t reserved);

/// Register with the address of the shared variable that has this place in Surroundings::shared.
std::string shared_register(std::size_t place);
/// Sets it, for the beginning of a function. The address would be computed anew for each check,
/// by a special register that takes as long as several of them: so it must not look like a
/// constant.
std::string shared_address_text(std::string_view variable, std::size_t place);

/// Registers of an entry of Plan::limits and of Plan::copies.
std::string limit_register(std::uint32_t number);
std::string copy_register(std::uint32_t number);

/// The register's name in the text.
std::string register_text(const ptx::Operand& operand);

class MemberText {
 public:
  /// Requires: the arguments outlive it.
  MemberText(const ptx::Module& module, const ptx::Function& function,
             const Surroundings& surroundings)
      : module_(module), function_(function), surroundings_(surroundings) {}

  /// The whole fast path: it leaves in ~fp whether the exact one is needed, beside what is there.
  std::string fast(const Member& member, bool is_first) const;
  /// Sets `result` where the member may be out of range.
  std::string fast_range(const Member& member, std::string_view result) const;
  /// Adds to `result` whether it may be misaligned.
  std::string alignment(const Member& member, std::string_view result) const;
  /// Leaves the bytes of an access in ~fs.
  std::string size_of(const Access& access) const;
  /// The register with the base, and in `prepare` what has to come before.
  std::string base_of(const Member& member, std::string& prepare) const;
  /// Whether addresses are of 32 bits.
  bool is_narrow(const Member& member) const;

 private:
  std::string fast_global(const Member& member, std::string_view result) const;
  std::string fast_shared(const Member& member, std::string_view result) const;
  std::string fast_variable(const Member& member, std::string_view result) const;
  std::uint64_t variable_bytes(const Member& member, ptx::Space space) const;
  std::string variable_address(const Member& member) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Surroundings& surroundings_;
};

}  // namespace slate::injector
