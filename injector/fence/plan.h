// Plan: which checks one function needs, and where. A site is a place in front of an instruction,
// with the accesses that are checked there: those that surely follow in the same chain of basic
// blocks (moves.h), by addresses that are known there. What a check on every way here has shown is
// not checked again.
// It writes no text. Plain data. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/fence/access_bounds.h"
#include "injector/fence/accesses.h"
#include "injector/fence/addresses.h"
#include "injector/fence/element_limits.h"
#include "injector/fence/indices.h"
#include "injector/fence/shared_clearing.h"
#include "injector/fence/shown.h"
#include "injector/fence/waits.h"
#include "injector/ptx/module.h"

namespace slate::injector {

// Of a worker's copies of the program's shared variables: the variable, and the register with the
// present one's address. They are the program's memory, though a form has made the names.
inline constexpr std::string_view kCopies = "__slate_copies";
inline constexpr std::string_view kCopyRegister = "%__slate_copy";

/// Accesses by one base in one space under one predicate.
struct Member {
  Place place;  // its offset is 0; see CheckedAccess
  MemorySpace space = MemorySpace::kGeneric;
  const ptx::Operand* guard = nullptr;
  std::vector<CheckedAccess> accesses;
  /// The only access, where its size is known at run time only, or where some lanes do not do it.
  std::optional<Access> special{};
  /// Loop in front of which the fast path is taken once (HoistedChecks); none: at the site.
  std::optional<std::uint32_t> loop{};
  /// Variable from whose address the base seems to be computed; null: none.
  const ptx::Operand* variable = nullptr;
  /// What its base is, if the check can look at an index instead.
  std::optional<IndexedAddress> indexed{};
  std::optional<IndexCheck> index{};
  /// What the index is plus a constant, if that has the same value in the check.
  std::optional<AddedIndex> neighbour{};
  /// Whether the fast path of another member of the site serves it.
  bool is_served = false;

  std::int64_t low() const;
  std::int64_t high() const;  // behind the last byte
};

struct Site {
  std::uint32_t at = 0;  // index of the instruction
  std::vector<Member> members;
  /// Instructions that compute addresses of members, to be moved here from behind, in their order.
  std::vector<std::uint32_t> moved;
  /// Loads from behind, to be moved behind the check, in their order.
  std::vector<std::uint32_t> loads;
};

/// The fast path of all members in a loop whose base does not change there, at the end of a block
/// in front of it.
struct HoistedChecks {
  std::uint32_t loop = 0;  // number of the loop
  std::uint32_t at = 0;    // index of the block's last instruction
  bool is_behind = false;  // whether it goes behind that instruction, not in front
  std::vector<Member> members;
};

struct AccessCounts {
  std::uint32_t accesses = 0;  // those of the program
  std::uint32_t proven = 0;    // those that need no check by their text
  std::uint32_t covered = 0;   // those that an earlier check has shown already
  std::uint32_t checks = 0;    // members of all sites
  std::uint32_t indexed = 0;   // those of which the fast path looks at an index
  std::uint32_t branches = 0;  // sites
  std::uint32_t hoisted = 0;   // checks of which the fast path stands in front of a loop
  std::uint32_t bounded = 0;   // those that need no check where the plan's bounds hold
  std::uint32_t early = 0;     // loads that move behind a check in front of them
  std::uint32_t waits = 0;     // loops in which a thread may wait for others

  AccessCounts& operator+=(const AccessCounts& other);
};

struct Plan {
  std::string why_not;                 // why the function cannot be fenced; empty: it can
  std::vector<Site> sites;             // in text order
  std::vector<HoistedChecks> hoisted;  // in text order
  /// Loops in which the thread looks now and then whether others of its session were ended: in
  /// text order.
  std::vector<Wait> waits;
  std::vector<ElementLimit> limits;
  std::vector<IndexCopy> copies;           // each of another reader
  std::vector<InstructionEffect> effects;  // by instruction
  std::vector<bool> handles;               // by instruction: whether its handle is looked up
  /// Parameters of which addresses are computed, by name and offset as in the text, with the last
  /// bits that must be 0 for the fast path.
  std::map<std::string, std::uint32_t> aligned_parameters;
  /// What a launch has to keep to. Without claims: nothing.
  AccessBounds bounds;
  /// Of the block's shared memory, where the bounds hold.
  SharedClearing clearing;
  /// The instruction in front of which local memory is to be cleared: every way to its use passes
  /// there once, and threads that do not come there pay nothing. 0: the function's beginning. None:
  /// nothing may read local memory.
  std::optional<std::uint32_t> local_use{};
  AccessCounts counts;
  bool may_end = false;  // whether anything may end a thread
  /// Whether a claim of `bounds` says that the block consists of whole warps.
  bool has_whole_warps = false;

  /// By instruction: whether the fence may end some threads of a warp there, in front of it or in a
  /// function that it calls. It ends all of them in front of what reads_warp.
  std::vector<bool> endings() const;
};

/// What a plan may count on.
struct PlanOptions {
  OwnNames names = OwnNames::kRefused;
  /// The rows of the table of tabulate_variables(), whose addresses the loader writes.
  std::vector<TabledVariable> tabled{};
  /// Whether accesses that the launch's values bound go without a check.
  bool is_bounded = false;
  const LaunchValues* launch = nullptr;  // as in FenceOptions
};

/// The plan of a function with a body. Its pointers lead into `module`.
Plan make_plan(const ptx::Module& module, const ptx::Function& function,
               const PlanOptions& options);

}  // namespace slate::injector
