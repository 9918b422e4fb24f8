#include "injector/fence/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "injector/analysis/dominators.h"
#include "injector/fence/fence_table.h"
#include "injector/fence/loops.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::size_t kMostMembers = 8;  // of a site: their addresses take registers
constexpr std::size_t kMostMoved = 12;   // instructions that one address may take
constexpr std::size_t kMostFacts = 64;   // of one register that are looked at
constexpr std::string_view kCopyRegister = "%__slate_copy";
constexpr std::string_view kCopies = "__slate_copies";

const ptx::Variable* variable_named(const ptx::Module& module, const ptx::Function& function,
                                    const Operand& operand) {
  if (operand.reference == Reference::kGlobal) return &module.variables[operand.index];
  if (operand.reference == Reference::kLocal) return &function.variables[operand.index];
  return nullptr;
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

/// Whether what holds for accesses of one space holds for those of another by the same address.
bool serves(MemorySpace shown, MemorySpace wanted) {
  return shown == wanted || (shown == MemorySpace::kGlobal && wanted == MemorySpace::kGeneric);
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
  branches += other.branches;
  hoisted += other.hoisted;
  return *this;
}

Plan::Plan(const ptx::Module& module, const ptx::Function& function, OwnNames names)
    : module_(module),
      function_(function),
      names_(names),
      flow_(function),
      registers_(function),
      addresses_(module, function, flow_, registers_),
      handles_(function.instructions.size(), false),
      moved_(function.instructions.size(), false) {
  find_effects();
  if (!why_not_.empty()) return;
  walk();
  std::ranges::stable_sort(sites_, {}, &Site::at);
  hoist();
  for (const Site& site : sites_) {
    counts_.checks += static_cast<std::uint32_t>(site.members.size());
    ++counts_.branches;
  }
  may_end_ |= !sites_.empty();
}

void Plan::find_effects() {
  effects_.reserve(function_.instructions.size());
  for (const Instruction& instruction : function_.instructions) {
    effects_.push_back(effect_of(module_, function_, instruction));
    const Effect& effect = effects_.back();
    if (why_not_.empty()) why_not_ = effect.why_not;
    may_end_ |= effect.end != Violation::kNone || effect.handle != nullptr ||
                effect.jumps_by_index || effect.barrier != nullptr ||
                effect.barrier_threads != nullptr;
  }
  if (const Instruction* stray = stray_branch(function_); stray != nullptr && why_not_.empty()) {
    why_not_ =
        fmt::format("line {}: jumps to a name that is no label of its function", stray->line);
  }
}

/// In the order of the tree of dominators: the facts are those of the way down to a block.
void Plan::walk() {
  const auto& dominators = addresses_.dominators();
  std::vector<std::vector<std::uint32_t>> children(dominators.size());
  std::vector<std::pair<std::uint32_t, bool>> waiting;  // block, whether it was entered
  for (std::uint32_t b = static_cast<std::uint32_t>(dominators.size()); b-- > 0;) {
    if (dominators[b] == kNoDominator) {
      waiting.emplace_back(b, false);
    } else {
      children[dominators[b]].push_back(b);
    }
  }
  std::vector<std::size_t> marks;
  while (!waiting.empty()) {
    auto& [block, entered] = waiting.back();
    if (entered) {
      for (; fact_log_.size() > marks.back(); fact_log_.pop_back()) {
        auto& facts = facts_[fact_log_.back()];
        if (!facts.empty()) facts.pop_back();
      }
      marks.pop_back();
      waiting.pop_back();
      continue;
    }
    entered = true;
    marks.push_back(fact_log_.size());
    const std::uint32_t present = block;
    enter(present);
    for (const std::uint32_t child : children[present]) waiting.emplace_back(child, false);
  }
}

/// Of bases that do not change in a loop, to the front of the outermost such loop. There the fast
/// path is only computed: a thread that does not make the access is not ended for it.
void Plan::hoist() {
  const Loops loops(flow_, addresses_.dominators());
  if (loops.count() == 0) return;
  std::vector<std::uint32_t> places(loops.count(), ControlFlow::kNone);  // index into hoisted_
  for (Site& site : sites_) {
    if (is_in_scope(site.at)) continue;
    for (Member& member : site.members) {
      const auto number = member.place.number;
      if (!number || member.special || !addresses_.is_written_once(*number)) continue;
      const std::uint32_t made = addresses_.definition(*number);
      if (!addresses_.dominates(made, site.at)) continue;
      for (const std::uint32_t loop : loops.around(flow_.block_of(site.at))) {
        if (loops.contains(loop, flow_.block_of(made))) break;
        member.loop = loop;
      }
      if (!member.loop) continue;
      const std::uint32_t end = flow_.blocks()[loops.before(*member.loop)].end;
      if (is_in_scope(end - 1)) {
        member.loop.reset();
        continue;
      }
      std::uint32_t& place = places[*member.loop];
      if (place == ControlFlow::kNone) {
        place = static_cast<std::uint32_t>(hoisted_.size());
        const std::uint32_t last = end - 1;
        const std::string_view opcode = function_.instructions[last].opcode;
        const bool ends = opcode == "bra" || opcode == "brx" || opcode == "ret" ||
                          opcode == "exit" || opcode == "trap";
        hoisted_.push_back({.loop = *member.loop, .at = last, .is_behind = !ends, .members = {}});
      }
      hoisted_[place].members.push_back(member);
      ++counts_.hoisted;
    }
  }
  std::ranges::stable_sort(hoisted_, {}, &HoistedChecks::at);
}

void Plan::enter(std::uint32_t block) {
  const ControlFlow::Block& range = flow_.blocks()[block];
  const std::size_t first = fact_log_.size();
  last_write_.clear();
  floor_ = range.first;
  for (std::uint32_t i = range.first; i < range.end; ++i) look_at(i);
  // What may change elsewhere holds within the block only.
  for (std::size_t i = first; i < fact_log_.size(); ++i) {
    if (!addresses_.is_written_once(fact_log_[i])) facts_[fact_log_[i]].clear();
  }
}

void Plan::look_at(std::uint32_t at) {
  const Effect& effect = effects_[at];
  if (effect.is_hint) {
    // Left out where it is not surely allowed: see CheckText.
  } else {
    for (const Access& access : effect.accesses) add(at, access);
  }
  if (effect.handle != nullptr && !is_own(*effect.handle)) look_at_handle(at);
  if (function_.instructions[at].opcode == "call") floor_ = at + 1;
  forget_written(at);
}

void Plan::forget_written(std::uint32_t at) {
  registers_.for_each_write(function_.instructions[at], [&](std::uint32_t r) {
    last_write_[r] = at;
    if (!addresses_.is_written_once(r)) facts_[r].clear();
  });
}

bool Plan::is_own(const Operand& base) const {
  if (names_ != OwnNames::kExpected || base.text == kCopyRegister) return false;
  return base.text.starts_with(kReservedPrefix) ||
         (base.text.starts_with('%') && base.text.substr(1).starts_with(kReservedPrefix));
}

bool Plan::is_in_scope(std::uint32_t at) const {
  const auto scope = std::ranges::upper_bound(function_.scopes, at, {}, &ptx::InnerScope::end);
  return scope != function_.scopes.end() && scope->first <= at;
}

/// By the address of a variable, and within it.
bool Plan::is_proven(const Place& place, const Access& access) const {
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

/// In shared memory that is there twice, by the name of a variable before.
bool Plan::is_in_copies(const Place& place, const Access& access) const {
  if (names_ != OwnNames::kExpected || !place.number || place.base->text != kCopyRegister ||
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

bool Plan::is_covered(const Place& place, MemorySpace space, const CheckedAccess& access) const {
  if (!place.number) return false;
  const auto found = facts_.find(*place.number);
  if (found == facts_.end()) return false;
  const auto& facts = found->second;
  const std::size_t first = facts.size() > kMostFacts ? facts.size() - kMostFacts : 0;
  for (std::size_t i = first; i < facts.size(); ++i) {
    const CheckedAccess& shown = facts[i].access;
    const bool is_within =
        shown.offset <= access.offset &&
        access.offset + std::int64_t{access.bytes} <= shown.offset + std::int64_t{shown.bytes};
    const std::int64_t apart = access.offset - shown.offset;
    const bool is_aligned = shown.align >= access.align && apart % std::int64_t{access.align} == 0;
    if (serves(facts[i].space, space) && is_within && is_aligned &&
        (shown.writes || !access.writes)) {
      return true;
    }
  }
  return false;
}

CheckedAccess Plan::checked(const Place& place, const Access& access, std::uint32_t at) {
  CheckedAccess result{.offset = place.offset,
                       .bytes = access.bytes,
                       .align = access.align,
                       .writes = access.writes,
                       .tests_alignment = false,
                       .line = function_.instructions[at].line};
  const Residue residue = addresses_.residue(place);
  const bool is_known =
      residue.bits >= static_cast<std::uint32_t>(std::bit_width(access.align)) - 1 &&
      (residue.rest & (access.align - 1)) == 0;
  result.tests_alignment = !is_known && access.align > 1;
  result.follows_parameter = is_known && residue.origin != Residue::kNoOrigin && access.align > 1;
  if (result.follows_parameter) {
    const Operand& source = addresses_.origin(residue.origin).operands[1];
    aligned_[fmt::format("{}+{}", source.parts[0].text, source.integer)] |= access.align - 1;
  }
  return result;
}

/// Whether the register has its value already in front of instruction `at` of the block.
bool Plan::is_old(std::uint32_t number, std::uint32_t at) const {
  const auto write = last_write_.find(number);
  return write == last_write_.end() || write->second < at || moved_[write->second];
}

/// Adds the instructions that have to move for the register to have its value in front of `at`.
/// Returns false if it cannot be. They only compute, so nobody sees that they come earlier.
bool Plan::collect_moved(std::uint32_t number, std::uint32_t at,
                         std::vector<std::uint32_t>& moved) const {
  if (is_old(number, at)) return true;
  if (!addresses_.is_written_once(number) || moved.size() >= kMostMoved) return false;
  const std::uint32_t made = addresses_.definition(number);
  if (std::ranges::find(moved, made) != moved.end()) return true;
  const Instruction& instruction = function_.instructions[made];
  const bool is_pure = may_be_repeated(instruction) && effects_[made].accesses.empty();
  if (!is_pure || is_in_scope(made)) return false;
  std::uint32_t results = 0;
  registers_.for_each_write(instruction, [&](std::uint32_t) { ++results; });
  bool can_move = results == 1;
  for_each_operand(instruction.operands, [&](const Operand& operand) {
    const bool is_time =
        operand.kind == Operand::Kind::kSpecial &&
        (operand.text.starts_with("%clock") || operand.text.starts_with("%global"));
    can_move &=
        !is_time && (operand.reference != Reference::kParameter || instruction.has("param"));
  });
  registers_.for_each_read(
      instruction, [&](std::uint32_t r) { can_move = can_move && collect_moved(r, at, moved); });
  if (can_move) moved.push_back(made);
  return can_move && moved.size() <= kMostMoved;
}

/// Whether the register has its value at the site, or could be given it there.
bool Plan::move_to(Site& site, std::uint32_t number) {
  std::vector<std::uint32_t> moved;
  if (!collect_moved(number, site.at, moved)) return false;
  for (const std::uint32_t instruction : moved) {
    moved_[instruction] = true;
    site.moved.push_back(instruction);
  }
  std::ranges::sort(site.moved);
  return true;
}

Site& Plan::site_for(std::uint32_t at, const Place& place, const Operand* guard, bool is_alone) {
  const bool has_open = !sites_.empty() && sites_.back().at >= floor_ && sites_.back().at <= at &&
                        sites_.back().members.size() < kMostMembers;
  if (has_open && sites_.back().at == at) return sites_.back();
  if (has_open && !is_alone && !is_in_scope(at) && !is_in_scope(sites_.back().at)) {
    Site& open = sites_.back();
    const auto predicate = guard == nullptr ? std::nullopt : registers_.of(*guard);
    const bool guard_is_known = guard == nullptr || (predicate && is_old(*predicate, open.at));
    const bool is_variable = !place.number && addresses_.variable_behind(place) != nullptr;
    if (guard_is_known && (is_variable || (place.number && move_to(open, *place.number))))
      return open;
  }
  sites_.push_back({.at = at, .members = {}, .moved = {}});
  return sites_.back();
}

void Plan::join(Site& site, Member member) {
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
bool Plan::has_short_address(const Operand& address, MemorySpace space) const {
  if (space == MemorySpace::kShared || address.parts.empty()) return false;
  const Operand& base = address.parts[0];
  if (const auto number = registers_.of(base)) return registers_.bytes(*number) != 8;
  const bool is_parameter = base.reference == Reference::kParameter;
  return is_parameter && ptx::type_bytes(function_.parameters[base.index].type) != 8;
}

void Plan::add(std::uint32_t at, const Access& access) {
  const Operand& address = *access.address;
  if (!address.parts.empty() && is_own(address.parts[0])) return;
  ++counts_.accesses;
  Place place{.base = &address, .number = std::nullopt, .offset = 0, .is_generic = false};
  if (!address.parts.empty()) {
    place = is_in_scope(at) ? Place{.base = &address.parts[0],
                                    .number = registers_.of(address.parts[0]),
                                    .offset = address.integer,
                                    .is_generic = false}
                            : addresses_.trace(address, at);
  } else {
    place.offset = address.integer;
  }
  if (is_proven(place, access) || is_in_copies(place, access)) {
    ++counts_.proven;
    return;
  }
  if (has_short_address(address, access.space)) {
    why_not_ = fmt::format("line {}: has an address of 32 bits", function_.instructions[at].line);
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
  const CheckedAccess wanted = checked(place, access, at);
  if (!is_special && is_covered(place, access.space, wanted)) {
    ++counts_.covered;
    return;
  }
  Member member{.place = place, .space = access.space, .guard = guard, .accesses = {wanted}};
  member.place.offset = 0;
  if (is_special) member.special = access;
  member.variable = addresses_.variable_behind(place);
  Site& site = site_for(at, place, guard, is_special);
  join(site, std::move(member));
  if (guard == nullptr && !is_special) remember(at, place, access.space, wanted);
}

void Plan::remember(std::uint32_t at, const Place& place, MemorySpace space,
                    const CheckedAccess& access) {
  if (!place.number) return;
  const std::uint32_t number = *place.number;
  // Read before it is written, it may be another value later.
  if (addresses_.is_written_once(number) &&
      !addresses_.dominates(addresses_.definition(number), at))
    return;
  facts_[number].push_back({.space = space, .access = access});
  fact_log_.push_back(number);
}

void Plan::look_at_handle(std::uint32_t at) {
  const Instruction& instruction = function_.instructions[at];
  const Operand& handle = *effects_[at].handle;
  const Place place{
      .base = &handle, .number = registers_.of(handle), .offset = 0, .is_generic = false};
  const CheckedAccess use{.offset = 0, .bytes = 8};
  ++counts_.accesses;
  if (is_covered(place, MemorySpace::kHandle, use)) {
    ++counts_.covered;
    return;
  }
  handles_[at] = true;
  ++counts_.checks;
  ++counts_.branches;
  if (!instruction.guard) remember(at, place, MemorySpace::kHandle, use);
}

}  // namespace slate::injector
