// Plan: which checks one function needs, and where. A site is a place in front of an instruction,
// with the accesses that are checked there: those that surely follow in the same basic block, by
// addresses that are known there. What a check on every way here has shown is not checked again.
// It writes no text. Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/fence/accesses.h"
#include "injector/fence/addresses.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// One access of a member, `offset` bytes from the member's base.
struct CheckedAccess {
  std::int64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t align = 1;
  bool writes = false;
  /// Whether nothing is known of the base's last bits, so that the fast path has to look at them.
  bool tests_alignment = false;
  /// Whether it is aligned if the parameter that its base was computed from is.
  bool follows_parameter = false;
  std::uint32_t line = 0;

  bool operator==(const CheckedAccess&) const = default;
};

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

  std::int64_t low() const;
  std::int64_t high() const;  // behind the last byte
};

struct Site {
  std::uint32_t at = 0;  // index of the instruction
  std::vector<Member> members;
  /// Instructions that compute addresses of members, to be moved here from behind: in text order.
  std::vector<std::uint32_t> moved;
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
  std::uint32_t branches = 0;  // sites
  std::uint32_t hoisted = 0;   // checks of which the fast path stands in front of a loop

  AccessCounts& operator+=(const AccessCounts& other);
};

class Plan {
 public:
  Plan(const ptx::Module& module, const ptx::Function& function, OwnNames names);

  /// Why the function cannot be fenced; empty: it can.
  const std::string& why_not() const { return why_not_; }
  const std::vector<Site>& sites() const { return sites_; }
  const std::vector<HoistedChecks>& hoisted() const { return hoisted_; }
  /// By instruction.
  const std::vector<Effect>& effects() const { return effects_; }
  /// Whether the handle of this instruction has to be looked up.
  bool checks_handle(std::uint32_t at) const { return handles_[at]; }
  const AccessCounts& counts() const { return counts_; }
  /// Parameters of which an address is computed, and the last bits that must be 0 for the fast
  /// path: name and offset as in the text, mask.
  const std::map<std::string, std::uint32_t>& aligned_parameters() const { return aligned_; }
  /// Whether anything may end a thread.
  bool may_end() const { return may_end_; }

 private:
  struct Fact {
    MemorySpace space;
    CheckedAccess access;
  };
  using Facts = std::unordered_map<std::uint32_t, std::vector<Fact>>;

  void find_effects();
  void walk();
  void hoist();
  void enter(std::uint32_t block);
  void look_at(std::uint32_t at);
  void look_at_handle(std::uint32_t at);
  void add(std::uint32_t at, const Access& access);
  void remember(std::uint32_t at, const Place& place, MemorySpace space,
                const CheckedAccess& access);
  bool has_short_address(const ptx::Operand& address, MemorySpace space) const;
  bool is_own(const ptx::Operand& base) const;
  bool is_in_scope(std::uint32_t at) const;
  bool is_proven(const Place& place, const Access& access) const;
  bool is_in_copies(const Place& place, const Access& access) const;
  bool is_covered(const Place& place, MemorySpace space, const CheckedAccess& access) const;
  CheckedAccess checked(const Place& place, const Access& access, std::uint32_t at);
  Site& site_for(std::uint32_t at, const Place& place, const ptx::Operand* guard, bool is_alone);
  void join(Site& site, Member member);
  bool is_old(std::uint32_t number, std::uint32_t at) const;
  bool collect_moved(std::uint32_t number, std::uint32_t at,
                     std::vector<std::uint32_t>& moved) const;
  bool move_to(Site& site, std::uint32_t number);
  void forget_written(std::uint32_t at);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const OwnNames names_;
  const ControlFlow flow_;
  const Registers registers_;
  const Addresses addresses_;
  std::string why_not_;
  std::vector<Effect> effects_;
  std::vector<bool> handles_;
  std::vector<bool> moved_;  // by instruction: whether a site in front of it has it
  std::vector<Site> sites_;
  std::vector<HoistedChecks> hoisted_;
  AccessCounts counts_;
  std::map<std::string, std::uint32_t> aligned_;
  bool may_end_ = false;
  // Of the walk.
  Facts facts_;                          // by number of the base's register
  std::vector<std::uint32_t> fact_log_;  // registers in the order of their facts
  std::unordered_map<std::uint32_t, std::uint32_t> last_write_;  // in the block, by register
  std::uint32_t floor_ = 0;  // first instruction that a site may stand at
};

}  // namespace slate::injector
