#include "injector/fence/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "injector/analysis/dominators.h"
#include "injector/fence/bound_finder.h"
#include "injector/fence/clearing.h"
#include "injector/fence/fence_table.h"
#include "injector/fence/loops.h"
#include "injector/fence/moves.h"
#include "injector/fence/shared_use.h"
#include "injector/forms/placed_variables.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::size_t kNever = ~std::size_t{0};
// Members of a site: their addresses take registers. A launch of few threads has registers to
// spare, and waits for each group of loads that stands between two sites.
constexpr std::size_t kMostMembers = 8, kMostOfFewThreads = 24;
constexpr std::uint64_t kFewThreads = 1 << 15;
/// Instructions that may run between two blocks of a chain: addresses are kept as long.
constexpr std::uint32_t kMostBetween = 32;
constexpr std::size_t kMostBlocks = 1024;  // of a function of which chains are looked for

std::size_t most_members(const PlanOptions& options) {
  if (!options.is_bounded || options.launch == nullptr) return kMostMembers;
  std::uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    threads = std::min(threads, kFewThreads + 1) * options.launch->grid[axis];
    threads = std::min(threads, kFewThreads + 1) * options.launch->block[axis];
  }
  return threads <= kFewThreads ? kMostOfFewThreads : kMostMembers;
}

/// As Plan::local_use.
std::optional<std::uint32_t> find_local_use(const ptx::Function& function, const ControlFlow& flow,
                                            const Addresses& addresses, const Loops& loops,
                                            const std::vector<InstructionEffect>& effects) {
  std::optional<std::uint32_t> block;
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    // A function may have the address.
    const bool is_use =
        function.instructions[i].opcode == "call" ||
        std::ranges::any_of(effects[i].accesses, [](const Access& access) {
          return access.space == MemorySpace::kLocal || access.space == MemorySpace::kGeneric;
        });
    const std::uint32_t here = flow.block_of(i);
    if (is_use && here != block) block = block ? addresses.common_dominator(*block, here) : here;
  }
  if (!block) return std::nullopt;
  block = loops.outside(*block);
  const ControlFlow::Block& found = flow.blocks()[*block];
  // Not every cycle is one of the loops.
  const bool comes_again = flow.reachable_from(found.successors)[*block];
  return comes_again || is_in_scope(function, found.first) ? 0 : found.first;
}

bool is_same(const Operand* a, const Operand* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->text == b->text && a->reference == b->reference && a->index == b->index &&
         a->component == b->component && a->negated == b->negated;
}

bool is_same_base(const Place& a, const Place& b) {
  return a.number == b.number && is_same(a.base, b.base);
}

/// Whether an access of `space` by the plain address of a variable in `declared` goes there.
bool leads_to(ptx::Space declared, MemorySpace space, bool is_generic, bool writes) {
  switch (space) {
    case MemorySpace::kGlobal:
      return declared == ptx::Space::kGlobal;
    case MemorySpace::kShared:
      return declared == ptx::Space::kShared && !is_generic;
    case MemorySpace::kLocal:
      return declared == ptx::Space::kLocal && !is_generic;
    case MemorySpace::kConst:
      return declared == ptx::Space::kConst && !is_generic;
    case MemorySpace::kGeneric:
      if (declared == ptx::Space::kGlobal) return true;
      return is_generic && !(declared == ptx::Space::kConst && writes);
    case MemorySpace::kHandle:
      break;
  }
  return false;
}

/// But for the parameter that it comes from.
bool is_aligned(const Residue& residue, const Access& access) {
  return residue.bits >= static_cast<std::uint32_t>(std::bit_width(access.align)) - 1 &&
         (residue.rest & (access.align - 1)) == 0;
}

}  // namespace

std::int64_t Member::low() const {
  std::int64_t low = accesses.front().offset;
  for (const CheckedAccess& access : accesses) low = std::min(low, access.offset);
  return low;
}

std::int64_t Member::high() const {
  std::int64_t high = accesses.front().offset;
  for (const CheckedAccess& access : accesses)
    high = std::max(high, access.offset + std::int64_t{access.bytes});
  return high;
}

AccessCounts& AccessCounts::operator+=(const AccessCounts& other) {
  accesses += other.accesses;
  proven += other.proven;
  covered += other.covered;
  checks += other.checks;
  indexed += other.indexed;
  branches += other.branches;
  hoisted += other.hoisted;
  bounded += other.bounded;
  early += other.early;
  waits += other.waits;
  return *this;
}

std::vector<bool> Plan::endings() const {
  std::vector<bool> ends = handles;
  for (const Site& site : sites) ends[site.at] = true;
  for (const Wait& wait : waits) ends[wait.at] = true;
  for (std::uint32_t i = 0; i < ends.size(); ++i) {
    if (effects[i].may_end() || effects[i].calls) ends[i] = true;
  }
  return ends;
}

namespace {

/// Makes a plan, in one walk down the tree of dominators. It has more than 25 functions, as each
/// access is tried against all that may prove or cover it, by what the walk knows so far.
class Planner {
 public:
  Planner(const ptx::Module& module, const ptx::Function& function, const PlanOptions& options)
      : module_(module),
        function_(function),
        options_(options),
        most_members_(most_members(options)),
        flow_(function),
        registers_(function),
        addresses_(module, function, flow_, registers_,
                   options.names == OwnNames::kExpected ? std::span(options.tabled)
                                                        : std::span<const TabledVariable>()),
        loops_(flow_, addresses_.dominators()),
        limits_(flow_, addresses_),
        shown_(takes_parameter_address(function)),
        moves_(function, registers_, addresses_) {
    if (options.is_bounded)
      finder_.emplace(function, flow_, registers_, addresses_, loops_, options.launch);
  }

  Plan make() {
    find_effects();
    plan_.handles.assign(function_.instructions.size(), false);
    if (!plan_.why_not.empty()) return std::move(plan_);
    if (finder_)
      shared_.emplace(module_, function_, flow_, registers_, plan_.effects, options_.launch);
    walk();
    std::ranges::stable_sort(plan_.sites, {}, &Site::at);
    count_elements();
    hoist();
    place_limits();
    plan_.local_use = find_local_use(function_, flow_, addresses_, loops_, plan_.effects);
    const bool skips_own = options_.names == OwnNames::kExpected;
    plan_.waits = Waits(function_, flow_, registers_, addresses_, loops_, skips_own).find();
    plan_.counts.waits = static_cast<std::uint32_t>(plan_.waits.size());
    for (const Site& site : plan_.sites) {
      plan_.counts.checks += static_cast<std::uint32_t>(site.members.size());
      ++plan_.counts.branches;
    }
    plan_.may_end |= !plan_.sites.empty() || !plan_.waits.empty();
    if (finder_) {
      clear_shared();
      claim_whole_warps();
      plan_.bounds = finder_->bounds(std::move(claims_));
      pass_limits();
    }
    return std::move(plan_);
  }

 private:
  void find_effects();
  void clear_shared();
  void claim_whole_warps();
  void walk();
  void count_elements();
  void choose_index(Member& member);
  static void serve_neighbours(Site& site);
  void join_limits(Site& site);
  void place_limits();
  void pass_limits();
  bool claim_all(const std::vector<BoundClaim>& wanted);
  bool claim_alignment(const Operand& parameter, std::uint32_t mask);
  void hoist();
  void enter(std::uint32_t block, bool is_chained);
  bool continues(std::uint32_t above, std::uint32_t block);
  void look_at(std::uint32_t at);
  void forget_written(std::uint32_t at);
  void look_at_handle(std::uint32_t at);
  void add(std::uint32_t at, const Access& access);
  void remember(std::uint32_t at, const Place& place, MemorySpace space,
                const CheckedAccess& access);
  Place place_of(const Operand& address, std::uint32_t at) const;
  const Operand* variable_at(const Place& place, std::uint32_t at) const;
  bool has_short_address(const Operand& address, MemorySpace space) const;
  bool is_own(const Operand& base) const;
  bool is_proven(const Place& place, const Access& access) const;
  bool is_in_copies(const Place& place, const Access& access) const;
  bool is_in_table(const Place& place, const Access& access, std::uint32_t at) const;
  std::uint32_t variable_align(const Operand& variable) const;
  std::optional<Access> of_known_size(Access access, std::uint32_t at) const;
  bool is_bounded(const Place& place, const Access& access, std::uint32_t at);
  std::uint64_t variable_bytes(const Operand& variable, const Access& access) const;
  CheckedAccess checked(const Place& place, const Access& access, std::uint32_t at);
  std::size_t site_for(std::uint32_t at, const Place& place, const Operand* guard, bool is_alone);
  void hasten(std::uint32_t at);
  void join(Site& site, Member member);

  const ptx::Module& module_;
  const ptx::Function& function_;
  const PlanOptions& options_;
  const std::size_t most_members_;  // of a site
  const ControlFlow flow_;
  const Registers registers_;
  const Addresses addresses_;
  const Loops loops_;
  Plan plan_;
  // Of the walk.
  ElementLimits limits_;
  Shown shown_;
  Moves moves_;
  std::vector<std::uint32_t> local_;  // registers of which facts hold in the present chain
  std::vector<std::size_t> open_;     // sites of the present chain, as places in Plan::sites
  /// The first of them behind which the present instruction's accesses may be; kNever: they stay.
  std::size_t earliest_ = kNever;
  // Of a bounded copy.
  std::optional<BoundFinder> finder_;
  std::vector<BoundClaim> claims_;
  std::optional<SharedUse> shared_;
};

void Planner::find_effects() {
  plan_.effects.reserve(function_.instructions.size());
  for (const Instruction& instruction : function_.instructions) {
    plan_.effects.push_back(effect_of(module_, function_, instruction));
    const InstructionEffect& effect = plan_.effects.back();
    if (plan_.why_not.empty()) plan_.why_not = effect.why_not;
    plan_.may_end |= effect.may_end() || effect.handle != nullptr || effect.reads_warp;
  }
  const Instruction* stray = stray_branch(function_);
  if (stray != nullptr && plan_.why_not.empty()) {
    plan_.why_not =
        fmt::format("line {}: jumps to a name that is no label of its function", stray->line);
  }
}

/// Of a bounded copy: chooses how.
void Planner::clear_shared() {
  if (!shared_->is_rehearsed()) {
    if (!shared_->has_none() || claims_.empty()) return;
    // What may read shared memory by a generic address finds none.
    plan_.clearing.is_whole = false;
    if (may_read_shared(plan_)) claims_.push_back(finder_->has_shared(0));
    return;
  }
  std::vector<bool> ends = plan_.endings();
  for (std::uint32_t i = 0; i < ends.size(); ++i) ends[i] = ends[i] || plan_.effects[i].reads_warp;
  plan_.clearing = shared_->clearing(ends, *finder_, claims_);
}

/// For instructions that read registers of other lanes.
void Planner::claim_whole_warps() {
  const auto reads_lanes = [](const Instruction& instruction) {
    return instruction.opcode == "shfl";
  };
  if (claims_.empty() || (std::ranges::none_of(plan_.effects, &InstructionEffect::reads_warp) &&
                          std::ranges::none_of(function_.instructions, reads_lanes))) {
    return;
  }
  const BoundClaim claim = finder_->has_whole_warps();
  plan_.has_whole_warps = finder_->may_hold(claim);
  if (plan_.has_whole_warps) claims_.push_back(claim);
}

void Planner::walk() {
  const auto& dominators = addresses_.dominators();
  std::vector<std::vector<std::uint32_t>> children(dominators.size());
  struct Visit {
    std::uint32_t block;
    bool is_chained = false;  // to the block that was entered before it
    bool entered = false;
    std::size_t mark = 0;  // of shown_
  };
  std::vector<Visit> waiting;
  for (std::uint32_t b = static_cast<std::uint32_t>(dominators.size()); b-- > 0;) {
    if (dominators[b] == kNoDominator) {
      waiting.push_back({b});
    } else {
      children[dominators[b]].push_back(b);
    }
  }
  while (!waiting.empty()) {
    Visit& top = waiting.back();
    if (top.entered) {
      shown_.rewind(top.mark);
      waiting.pop_back();
      continue;
    }
    top.entered = true;
    top.mark = shown_.mark();
    const std::uint32_t present = top.block;
    enter(present, top.is_chained);
    const std::uint32_t next = flow_.blocks()[present].meeting;
    for (const std::uint32_t child : children[present]) {
      if (child != next) waiting.push_back({child});
    }
    const bool has_next = std::ranges::find(children[present], next) != children[present].end();
    if (has_next) waiting.push_back({.block = next, .is_chained = continues(present, next)});
  }
}

/// Whether the block goes on with the chain of the one that was entered last. Notes what may run in
/// between.
bool Planner::continues(std::uint32_t above, std::uint32_t block) {
  if (flow_.blocks().size() > kMostBlocks) return false;
  const auto between = flow_.between(above, block);
  if (!between) return false;
  std::uint32_t count = 0;
  for (const std::uint32_t each : *between) {
    const ControlFlow::Block& range = flow_.blocks()[each];
    count += range.end - range.first;
    if (count > kMostBetween) return false;
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      if (function_.instructions[i].opcode == "call") return false;
    }
    // A thread that stays in between never comes to the block's loads.
    const bool turns = std::ranges::any_of(
        range.successors, [&](std::uint32_t next) { return leads(flow_, next, each, block); });
    if (turns || !flow_.reachable_from(range.successors)[block]) return false;
  }
  for (const std::uint32_t each : *between) {
    const ControlFlow::Block& range = flow_.blocks()[each];
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      moves_.pass_aside(i);
      forget_written(i);
    }
  }
  return true;
}

void Planner::enter(std::uint32_t block, bool is_chained) {
  const ControlFlow::Block& range = flow_.blocks()[block];
  moves_.begin_block(range.first, range.end, is_chained);
  if (!is_chained) {
    open_.clear();
    // What holds of a register that is written elsewhere, too, holds in one chain only.
    for (const std::uint32_t number : local_) shown_.forget(number);
    local_.clear();
  }
  for (std::uint32_t i = range.first; i < range.end; ++i) look_at(i);
}

void Planner::forget_written(std::uint32_t at) {
  registers_.for_each_write(function_.instructions[at], [&](std::uint32_t r) {
    if (!addresses_.is_written_once(r)) shown_.forget(r);
  });
}

void Planner::look_at(std::uint32_t at) {
  const Instruction& instruction = function_.instructions[at];
  const InstructionEffect& effect = plan_.effects[at];
  // A hint is left out where it is not surely allowed: see CheckText.
  if (!effect.is_hint) {
    earliest_ = kNever;
    for (const Access& access : effect.accesses) add(at, access);
    if (effect.accesses.size() == 1) hasten(at);
  }
  if (effect.handle != nullptr && !is_own(*effect.handle)) look_at_handle(at);
  if (instruction.opcode == "call") open_.clear();
  moves_.pass(at);
  forget_written(at);
}

void Planner::look_at_handle(std::uint32_t at) {
  const Operand& handle = *plan_.effects[at].handle;
  const Place place{
      .base = &handle, .number = registers_.of(handle), .offset = 0, .is_generic = false};
  const CheckedAccess use{.offset = 0, .bytes = 8};
  ++plan_.counts.accesses;
  if (place.number && shown_.covers(*place.number, MemorySpace::kHandle, use)) {
    ++plan_.counts.covered;
    return;
  }
  plan_.handles[at] = true;
  ++plan_.counts.checks;
  ++plan_.counts.branches;
  if (!function_.instructions[at].guard) remember(at, place, MemorySpace::kHandle, use);
}

void Planner::remember(std::uint32_t at, const Place& place, MemorySpace space,
                       const CheckedAccess& access) {
  if (!place.number) return;
  const std::uint32_t number = *place.number;
  if (!addresses_.is_written_once(number)) {
    local_.push_back(number);
  } else if (!addresses_.dominates(addresses_.definition(number), at)) {
    return;  // read before it is written: it may be another value later
  }
  shown_.add(number, space, access);
}

/// The first one in the chain where the address is known: an index into open_.
std::size_t Planner::site_for(std::uint32_t at, const Place& place, const Operand* guard,
                              bool is_alone) {
  const bool is_variable = !place.number && addresses_.variable_behind(place) != nullptr;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    Site& site = plan_.sites[open_[i]];
    if (site.members.size() >= most_members_) continue;
    if (site.at == at) return i;
    if (is_alone || is_in_scope(function_, at) || is_in_scope(function_, site.at) ||
        !is_same(variable_at(place, site.at), variable_at(place, at))) {
      continue;
    }
    const auto predicate = guard == nullptr ? std::nullopt : registers_.of(*guard);
    const bool guard_is_known =
        guard == nullptr || (predicate && moves_.is_old(*predicate, site.at));
    if (guard_is_known &&
        (is_variable || (place.number && moves_.move(*place.number, site.at, site.moved)))) {
      return i;
    }
  }
  open_.push_back(plan_.sites.size());
  plan_.sites.push_back({.at = at, .members = {}, .moved = {}, .loads = {}});
  return open_.size() - 1;
}

/// Moves a load behind the first check where it may be. There it is under way with others, while
/// the next check waits for what they load.
void Planner::hasten(std::uint32_t at) {
  for (std::size_t i = earliest_; i < open_.size(); ++i) {
    Site& site = plan_.sites[open_[i]];
    if (site.at == at) return;
    if (!moves_.move_load(at, site.at)) continue;
    site.loads.push_back(at);
    ++plan_.counts.early;
    return;
  }
}

/// Adds the claims, if all of them seem to hold.
bool Planner::claim_all(const std::vector<BoundClaim>& wanted) {
  if (!std::ranges::all_of(wanted, [&](const auto& each) { return finder_->may_hold(each); }))
    return false;
  for (const BoundClaim& each : wanted) {
    if (std::ranges::find(claims_, each) == claims_.end()) claims_.push_back(each);
  }
  return true;
}

/// That the last bits of a pointer are 0, in a bounded copy.
bool Planner::claim_alignment(const Operand& parameter, std::uint32_t mask) {
  return finder_ && claim_all({{.kind = BoundClaim::Kind::kAligned,
                                .bytes = mask + 1,
                                .limit = finder_->parameter_at(parameter)}});
}

namespace {

/// The last bits that have to be 0 of the parameter that the member's base follows.
std::uint32_t followed_mask(const Member& member) {
  std::uint32_t mask = 0;
  for (const CheckedAccess& access : member.accesses) {
    if (access.follows_parameter) mask |= access.align - 1;
  }
  return mask;
}

void follow_nothing(Member& member) {
  for (CheckedAccess& access : member.accesses) access.follows_parameter = false;
}

}  // namespace

/// Chooses indices in place of addresses, and which parameters are looked at for their alignment.
void Planner::count_elements() {
  for (Site& site : plan_.sites) {
    for (Member& member : site.members) {
      if (member.indexed) choose_index(member);
    }
    serve_neighbours(site);
    for (Member& member : site.members) {
      const std::uint32_t mask = followed_mask(member);
      if (mask == 0) continue;
      const Residue residue = addresses_.residue(member.place);
      const Operand& source = addresses_.origin(residue.origin).operands[1];
      if (claim_alignment(source, mask)) {
        follow_nothing(member);
      } else {
        plan_.aligned_parameters[fmt::format("{}+{}", source.parts[0].text, source.integer)] |=
            mask;
      }
    }
  }
}

/// Where one check by the base serves all accesses. The limit is 0 if the pointer is misaligned.
void Planner::choose_index(Member& member) {
  if (member.low() < 0 || member.high() > static_cast<std::int64_t>(kFenceSlack)) return;
  const IndexedAddress& indexed = *member.indexed;
  std::uint32_t mask = followed_mask(member);
  if (mask != 0 && claim_alignment(*indexed.pointer, mask)) mask = 0;
  follow_nothing(member);
  // Launches whose pointer leads elsewhere may have a copy of their own.
  if (finder_) {
    claim_all({{.step = finder_->parameter(*indexed.pointer, indexed.offset),
                .bytes = static_cast<std::uint32_t>(kFenceSlack)}});
  }
  member.index = limits_.add(indexed, mask);
  ++plan_.counts.indexed;
}

/// Where indices are one register plus constants, the comparison of the least serves all that are
/// within the slack above it. A sum that wraps is below the limit, too: limits of signed indices
/// keep a distance from 2^31.
void Planner::serve_neighbours(Site& site) {
  std::vector<Member*> members;
  for (Member& member : site.members) {
    const bool tests = std::ranges::any_of(member.accesses, &CheckedAccess::tests_alignment);
    if (member.index && member.neighbour && !tests) members.push_back(&member);
  }
  std::ranges::stable_sort(members, {}, [](const Member* each) { return each->neighbour->added; });
  std::vector<const Member*> compared;
  for (Member* const member : members) {
    member->is_served = std::ranges::any_of(compared, [&](const Member* other) {
      const std::int64_t apart = member->neighbour->added - other->neighbour->added;
      const auto most = static_cast<std::int64_t>(kFenceSlack);
      return other->index->limit == member->index->limit &&
             other->neighbour->number == member->neighbour->number &&
             is_same(other->guard, member->guard) && apart <= most &&
             (apart << member->indexed->shift) + member->high() <= most;
    });
    if (!member->is_served) compared.push_back(member);
  }
}

/// One comparison with the least limit serves all members that compare the same copy of an index.
void Planner::join_limits(Site& site) {
  const auto may_join = [](const Member& member) {
    return member.index && !member.loop && !member.is_served &&
           std::ranges::none_of(member.accesses, &CheckedAccess::tests_alignment);
  };
  for (auto first = site.members.begin(); first != site.members.end(); ++first) {
    if (!may_join(*first)) continue;
    std::vector<std::uint32_t> limits{first->index->limit};
    for (auto other = std::next(first); other != site.members.end(); ++other) {
      if (!may_join(*other) || other->index->copy != first->index->copy ||
          !is_same(other->guard, first->guard)) {
        continue;
      }
      other->is_served = true;
      if (std::ranges::find(limits, other->index->limit) == limits.end())
        limits.push_back(other->index->limit);
    }
    if (limits.size() > 1) first->index->limit = limits_.least(std::move(limits));
  }
}

/// What checks compare with a limit, at the end of the plan.
void Planner::place_limits() {
  for (Site& site : plan_.sites) join_limits(site);
  for (const Site& site : plan_.sites) {
    for (const Member& member : site.members) {
      const bool is_read = member.index && !member.loop && !member.is_served;
      if (is_read) limits_.use(member.index->limit, site.at);
    }
  }
  for (const HoistedChecks& checks : plan_.hoisted) {
    for (const Member& member : checks.members) {
      if (member.index) limits_.use(member.index->limit, checks.at);
    }
  }
  limits_.place(function_, loops_);
  plan_.limits = limits_.take_limits();
  plan_.copies = limits_.take_copies();
}

/// Has launches of a bounded copy pass the limits, if there is room behind the parameters.
void Planner::pass_limits() {
  constexpr std::uint64_t kBytes = sizeof(std::uint32_t);
  const std::uint64_t at = (ParameterLayout(function_).bytes() + kBytes - 1) / kBytes * kBytes;
  if (at + kBytes * plan_.limits.size() > PassedLimits::kMostBytes) return;
  PassedLimits& passed = plan_.bounds.passed;
  passed.at = static_cast<std::uint32_t>(at);
  for (const ElementLimit& limit : plan_.limits) {
    passed.limits.push_back(
        {.least_of = limit.least_of,
         .parameter = limit.pointer != nullptr ? finder_->parameter_at(*limit.pointer) : 0,
         .offset = limit.offset,
         .shift = limit.shift,
         .is_signed = limit.is_signed,
         .mask = limit.mask});
  }
}

/// Of bases that do not change in a loop, to the front of the outermost such loop. There the fast
/// path is only computed: a thread that does not make the access is not ended for it. But all of
/// the loop's accesses would go by the exact path then, so only those move that each turn makes.
void Planner::hoist() {
  if (loops_.count() == 0) return;
  std::vector<std::uint32_t> places(loops_.count(),
                                    ControlFlow::kNone);  // index into plan_.hoisted
  for (Site& site : plan_.sites) {
    if (is_in_scope(function_, site.at)) continue;
    for (Member& member : site.members) {
      const auto number = member.place.number;
      if (!number || member.special || !addresses_.is_written_once(*number)) continue;
      const std::uint32_t made = addresses_.definition(*number);
      if (!addresses_.dominates(made, site.at)) continue;
      for (const std::uint32_t loop : loops_.around(flow_.block_of(site.at))) {
        const bool is_in_each_turn =
            member.guard == nullptr &&
            std::ranges::all_of(loops_.tails(loop), [&](std::uint32_t tail) {
              const std::uint32_t end = flow_.blocks()[tail].end - 1;
              return site.at == end || addresses_.dominates(site.at, end);
            });
        if (loops_.contains(loop, flow_.block_of(made)) || !is_in_each_turn) break;
        member.loop = loop;
      }
      if (!member.loop) continue;
      const std::uint32_t end = flow_.blocks()[loops_.before(*member.loop)].end;
      const bool can_name = variable_at(member.place, end - 1) == member.variable;
      if (is_in_scope(function_, end - 1) || !can_name) {
        member.loop.reset();
        continue;
      }
      std::uint32_t& place = places[*member.loop];
      if (place == ControlFlow::kNone) {
        place = static_cast<std::uint32_t>(plan_.hoisted.size());
        const std::uint32_t last = end - 1;
        const std::string_view opcode = function_.instructions[last].opcode;
        const bool ends = opcode == "bra" || opcode == "brx" || opcode == "ret" ||
                          opcode == "exit" || opcode == "trap";
        plan_.hoisted.push_back(
            {.loop = *member.loop, .at = last, .is_behind = !ends, .members = {}});
      }
      plan_.hoisted[place].members.push_back(member);
      ++plan_.counts.hoisted;
    }
  }
  std::ranges::stable_sort(plan_.hoisted, {}, &HoistedChecks::at);
}

bool Planner::is_own(const Operand& base) const {
  if (options_.names != OwnNames::kExpected || base.text == kCopyRegister) return false;
  return base.text.starts_with(kReservedPrefix) ||
         (base.text.starts_with('%') && base.text.substr(1).starts_with(kReservedPrefix));
}

/// By the address of a variable, and within it.
bool Planner::is_proven(const Place& place, const Access& access) const {
  if (place.number || access.amount != nullptr) return false;
  const ptx::Variable* variable = variable_named(module_, function_, *place.base);
  if (variable == nullptr ||
      !leads_to(variable->space, access.space, place.is_generic, access.writes)) {
    return false;
  }
  const std::int64_t bytes = access.bytes;
  const auto whole = static_cast<std::int64_t>(variable->bytes);
  const Residue residue = addresses_.residue(place);
  return place.offset >= 0 && place.offset <= whole && bytes <= whole - place.offset &&
         (residue.rest & (access.align - 1)) == 0 &&
         residue.bits >= std::bit_width(access.align) - 1u;
}

/// In a variable outside of the module, by an address from the table.
bool Planner::is_in_table(const Place& place, const Access& access, std::uint32_t at) const {
  if (options_.names != OwnNames::kExpected || !place.number || access.amount != nullptr ||
      !addresses_.is_written_once(*place.number)) {
    return false;
  }
  const std::uint32_t made = addresses_.definition(*place.number);
  const auto row = addresses_.table_row(function_.instructions[made]);
  const bool leads_there =
      access.space == MemorySpace::kGlobal || access.space == MemorySpace::kGeneric;
  if (!row || !leads_there || !addresses_.dominates(made, at)) return false;
  const TabledVariable& variable = options_.tabled[*row];
  if (variable.is_constant && access.writes) return false;
  const auto whole = static_cast<std::int64_t>(variable.bytes);
  return place.offset >= 0 && place.offset <= whole &&
         std::int64_t{access.bytes} <= whole - place.offset &&
         place.offset % std::int64_t{access.align} == 0 && variable.align >= access.align;
}

/// In shared memory that is there twice, by the name of a variable before.
bool Planner::is_in_copies(const Place& place, const Access& access) const {
  if (options_.names != OwnNames::kExpected || !place.number || place.base->text != kCopyRegister ||
      access.amount != nullptr || access.space != MemorySpace::kShared) {
    return false;
  }
  const auto copies = std::ranges::find(function_.variables, kCopies, &ptx::Variable::name);
  if (copies == function_.variables.end()) return false;
  const auto one = static_cast<std::int64_t>(copies->bytes / 2);
  const std::int64_t align = access.align;
  return place.offset >= 0 && place.offset + std::int64_t{access.bytes} <= one &&
         place.offset % align == 0 && copies->align >= access.align;
}

/// Of a variable that the access may go to; 0: of another one.
std::uint64_t Planner::variable_bytes(const Operand& variable, const Access& access) const {
  if (variable.parts.empty()) {
    const ptx::Variable* found = variable_named(module_, function_, variable);
    const bool leads_there =
        found != nullptr && leads_to(found->space, access.space, false, access.writes);
    return leads_there ? found->bytes : 0;
  }
  const auto row = static_cast<std::size_t>(variable.integer) / sizeof(std::uint64_t);
  const bool is_global =
      access.space == MemorySpace::kGlobal || access.space == MemorySpace::kGeneric;
  if (!is_global || row >= options_.tabled.size()) return 0;
  const TabledVariable& tabled = options_.tabled[row];
  return tabled.is_constant && access.writes ? 0 : tabled.bytes;
}

/// The alignment of a variable that the text names; 1 of one in the table.
std::uint32_t Planner::variable_align(const Operand& variable) const {
  const ptx::Variable* const found =
      variable.parts.empty() ? variable_named(module_, function_, variable) : nullptr;
  return found != nullptr ? found->align : 1;
}

/// The access, if its size is a number, by way of a register perhaps.
std::optional<Access> Planner::of_known_size(Access access, std::uint32_t at) const {
  if (access.amount == nullptr) return access;
  const auto number = registers_.of(*access.amount);
  if (!number || !addresses_.is_written_once(*number)) return std::nullopt;
  const std::uint32_t made = addresses_.definition(*number);
  const Instruction& instruction = function_.instructions[made];
  if (instruction.opcode != "mov" || !addresses_.dominates(made, at) ||
      instruction.operands.back().kind != Operand::Kind::kInteger) {
    return std::nullopt;
  }
  constexpr std::int64_t kMost = 1 << 20;  // more fit nowhere
  const std::int64_t amount = instruction.operands.back().integer;
  if (amount < 0 || amount > kMost) return std::nullopt;
  const auto more = static_cast<std::uint32_t>(amount) * access.scale;
  if (more > kMost || (access.aligns_amount && more % access.align != 0)) return std::nullopt;
  access.bytes += more;
  access.amount = nullptr;
  return access;
}

/// Where the claims that are added for it hold.
bool Planner::is_bounded(const Place& place, const Access& any_access, std::uint32_t at) {
  const auto known = finder_ ? of_known_size(any_access, at) : std::nullopt;
  if (!known || known->bytes == 0) return false;
  const Access& access = *known;
  const BoundNumber value = finder_->address(*access.address, at);
  BoundClaim claim{.step = value.step, .bytes = access.bytes};
  if (value.variable != nullptr) {
    claim.kind = BoundClaim::Kind::kInVariable;
    claim.limit = variable_bytes(*value.variable, access);
  } else if (access.space != MemorySpace::kGlobal && access.space != MemorySpace::kGeneric) {
    return false;
  }
  std::vector<BoundClaim> wanted{claim};
  const Residue residue = addresses_.residue(place);
  if (!is_aligned(residue, access)) {
    if (value.variable != nullptr && variable_align(*value.variable) < access.align) return false;
    wanted.push_back(
        {.kind = BoundClaim::Kind::kMultiple, .step = value.step, .bytes = access.align});
  } else if (residue.origin != Residue::kNoOrigin && access.align > 1) {
    wanted.push_back(
        {.kind = BoundClaim::Kind::kAligned,
         .bytes = access.align,
         .limit = finder_->parameter_at(addresses_.origin(residue.origin).operands[1])});
  }
  if (!claim_all(wanted)) return false;
  // All else lies in the main extent, or is a variable outside of the module.
  if (value.variable != nullptr && value.variable->parts.empty())
    shared_->note(any_access, at, variable_named(module_, function_, *value.variable));
  return true;
}

CheckedAccess Planner::checked(const Place& place, const Access& access, std::uint32_t at) {
  CheckedAccess result{.offset = place.offset,
                       .bytes = access.bytes,
                       .align = access.align,
                       .writes = access.writes,
                       .tests_alignment = false,
                       .line = function_.instructions[at].line};
  const Residue residue = addresses_.residue(place);
  const bool is_known = is_aligned(residue, access);
  result.tests_alignment = !is_known && access.align > 1;
  result.follows_parameter = is_known && residue.origin != Residue::kNoOrigin && access.align > 1;
  return result;
}

void Planner::join(Site& site, Member member) {
  const CheckedAccess access = member.accesses.front();
  for (Member& other : site.members) {
    const bool is_one = is_same_base(other.place, member.place) && other.space == member.space &&
                        is_same(other.guard, member.guard) && !other.special && !member.special &&
                        (member.place.number || addresses_.variable_behind(member.place));
    if (!is_one) continue;
    const std::int64_t low = std::min(other.low(), access.offset);
    const std::int64_t high = std::max(other.high(), access.offset + std::int64_t{access.bytes});
    if (high - low > static_cast<std::int64_t>(kFenceSlack)) continue;
    const auto same = std::ranges::find_if(other.accesses, [&](const CheckedAccess& each) {
      return each.offset == access.offset && each.bytes == access.bytes &&
             each.align == access.align;
    });
    if (same != other.accesses.end()) {
      same->writes |= access.writes;
      same->tests_alignment |= access.tests_alignment;
    } else {
      other.accesses.push_back(access);
    }
    return;
  }
  site.members.push_back(std::move(member));
}

/// Outside of shared memory addresses have 64 bits.
bool Planner::has_short_address(const Operand& address, MemorySpace space) const {
  if (space == MemorySpace::kShared || address.parts.empty()) return false;
  const Operand& base = address.parts[0];
  if (const auto number = registers_.of(base)) return registers_.bytes(*number) != 8;
  const bool is_parameter = base.reference == Reference::kParameter;
  return is_parameter && ptx::type_bytes(function_.parameters[base.index].type) != 8;
}

/// The variable behind an address, if the text can name it there.
const Operand* Planner::variable_at(const Place& place, std::uint32_t at) const {
  const Operand* behind = addresses_.variable_behind(place);
  if (behind == nullptr || behind->reference != Reference::kLocal) return behind;
  const ptx::Variable& variable = function_.variables[behind->index];
  return is_declared(function_, variable, at) ? behind : nullptr;
}

Place Planner::place_of(const Operand& address, std::uint32_t at) const {
  if (address.parts.empty()) {
    return {
        .base = &address, .number = std::nullopt, .offset = address.integer, .is_generic = false};
  }
  if (!is_in_scope(function_, at)) return addresses_.trace(address, at);
  return {.base = &address.parts[0],
          .number = registers_.of(address.parts[0]),
          .offset = address.integer,
          .is_generic = false};
}

void Planner::add(std::uint32_t at, const Access& access) {
  const Operand& address = *access.address;
  if (!address.parts.empty() && is_own(address.parts[0])) return;
  ++plan_.counts.accesses;
  Place place = place_of(address, at);
  if (is_proven(place, access) || is_in_copies(place, access) || is_in_table(place, access, at)) {
    if (shared_ && !place.number)
      shared_->note(access, at, variable_named(module_, function_, *place.base));
    ++plan_.counts.proven;
    earliest_ = 0;
    return;
  }
  if (has_short_address(address, access.space)) {
    plan_.why_not =
        fmt::format("line {}: has an address of 32 bits", function_.instructions[at].line);
    return;
  }
  const Instruction& instruction = function_.instructions[at];
  const Operand* guard = instruction.guard ? &*instruction.guard : nullptr;
  const bool is_special = access.amount != nullptr || access.lanes != 32;
  if (!place.number && !address.parts.empty() && registers_.of(address.parts[0])) {
    place = {.base = &address.parts[0],
             .number = registers_.of(address.parts[0]),
             .offset = address.integer,
             .is_generic = false};
  }
  if (is_bounded(place, access, at)) {
    ++plan_.counts.bounded;
    earliest_ = 0;
    return;
  }
  if (shared_) shared_->note(access, at, nullptr);
  if (shared_ && shared_->stays_within(access, at)) {
    ++plan_.counts.bounded;
    return;
  }
  const CheckedAccess wanted = checked(place, access, at);
  if (!is_special && place.number && shown_.covers(*place.number, access.space, wanted)) {
    ++plan_.counts.covered;
    earliest_ = open_.empty() ? 0 : open_.size() - 1;
    return;
  }
  Member member{.place = place, .space = access.space, .guard = guard, .accesses = {wanted}};
  member.place.offset = 0;
  if (is_special) member.special = access;
  member.variable = variable_at(place, at);
  const bool may_index =
      access.space == MemorySpace::kGlobal || access.space == MemorySpace::kGeneric;
  const bool is_short = access.bytes <= kFenceSlack;  // what a limit leaves behind an element
  if (may_index && is_short && !is_special && place.number && member.variable == nullptr)
    member.indexed = indexed_address(function_, registers_, addresses_, *place.number, at);
  const std::size_t number = site_for(at, place, guard, is_special);
  Site& site = plan_.sites[open_[number]];
  if (!is_special) earliest_ = number;
  if (member.indexed) {
    member.neighbour = added_index(function_, registers_, addresses_, *member.indexed);
    const auto& root = member.neighbour;
    if (root && !moves_.reads_same(root->number, root->reader, site.at)) member.neighbour.reset();
  }
  join(site, std::move(member));
  if (guard == nullptr && !is_special) remember(at, place, access.space, wanted);
}

}  // namespace

Plan make_plan(const ptx::Module& module, const ptx::Function& function,
               const PlanOptions& options) {
  return Planner(module, function, options).make();
}

}  // namespace slate::injector
