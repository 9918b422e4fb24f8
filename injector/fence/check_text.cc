#include "injector/fence/check_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "injector/fence/fence_table.h"
#include "injector/fence/moves.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::size_t kRowBytes = 16;           // of kAccessTable
constexpr std::uint32_t kAlignShift = 8;        // of the alignment less 1 in a row's flags
constexpr std::uint64_t kWorkerWordBytes = 64;  // of __slate_s
/// Most elements of signed indices.

std::uint32_t flags_of(const CheckedAccess& access) {
  return (access.align - 1) << kAlignShift | (access.writes ? kFenceWrites : 0);
}

/// A jump past what an instruction would not do.
std::string skip(const Operand* guard, std::string_view label) {
  if (guard == nullptr) return {};
  return fmt::format("\t@{}{} bra {};\n", guard->negated ? "" : "!", register_text(*guard), label);
}

/// Goes through the ranges of the fence table, from the last one down: few registers live here.
/// {0} and {1}, labels; {2}, {3} and {4}, offsets; {5}, number of bytes.
constexpr std::string_view kScan = R"(	ld.const.u64 ~ft, [__slate_fence+{2}];
	setp.eq.u64 ~fq, ~ft, 0;
	@~fq bra {1};
	ld.volatile.global.u32 ~fc, [~ft+{3}];
{0}_scan:
	.pragma "nounroll";
	setp.eq.u32 ~fq, ~fc, 0;
	@~fq bra {1};
	sub.u32 ~fc, ~fc, 1;
	ld.const.u64 ~ft, [__slate_fence+{2}];
	mad.wide.u32 ~ft, ~fc, 16, ~ft;
	ld.volatile.global.v2.u64 {{~fl, ~fo}}, [~ft+{4}];
	sub.u64 ~fl, ~fa, ~fl;
	setp.lt.u64 ~fq, ~fl, ~fo;
	sub.u64 ~fo, ~fo, ~fl;
	setp.ge.and.u64 ~fq, ~fo, {5}, ~fq;
	@!~fq bra {0}_scan;
)";

/// Whether [~fa, ~fa + {3}) lies in the {1} bytes from {0} on; then to {2}.
constexpr std::string_view kWithin = R"(	mov.u64 ~fl, {0};
	sub.u64 ~fl, ~fa, ~fl;
	mov.u64 ~fo, {1};
	setp.lt.u64 ~fq, ~fl, ~fo;
	sub.u64 ~fo, ~fo, ~fl;
	setp.ge.and.u64 ~fq, ~fo, {3}, ~fq;
	@~fq bra {2};
)";

/// Whether [~fa, ~fa + {2}) overlaps the {0} bytes from ~fd on; then to {1}.
constexpr std::string_view kOverlaps = R"(	cvt.u64.u32 ~fl, ~fd;
	sub.u64 ~fl, ~fa, ~fl;
	add.u64 ~fl, ~fl, {2};
	sub.u64 ~fl, ~fl, 1;
	mov.u64 ~fo, {2};
	add.u64 ~fo, ~fo, {0};
	sub.u64 ~fo, ~fo, 1;
	setp.lt.u64 ~fq, ~fl, ~fo;
	@~fq bra {1};
)";

}  // namespace

/// Ends the thread, with ~fa in place.
std::string CheckText::fail_by(Violation kind, std::uint32_t line) {
  const std::string code =
      filled("\tmov.u32 ~fk, {};\n\tmov.u32 ~fn, 0;\n\tmov.u32 ~fw, 0;\n\tmov.u32 ~fv, {};\n",
             static_cast<std::uint32_t>(kind), line);
  if (!ending_.is_in_place) return code + fmt::format("\tbra {};\n", kEnding);
  return code + ending_in_place(ending_.kind, function_, ending_.number, false, endings_++);
}

std::string CheckText::next_label() {
  return filled("$f{}", labels_++);
}

std::string CheckText::look_at_parameters(const Plan& plan) {
  std::map<std::uint32_t, std::vector<std::string_view>> names;  // by mask
  for (const auto& [name, mask] : plan.aligned_parameters) names[mask].push_back(name);
  std::string code;
  for (const auto& [mask, group] : names) {
    const bool is_first_mask = code.empty();
    for (const std::string_view name : group) {
      const bool is_first = name == group.front();
      code += filled("\tld.param.u64 ~fo, [{}];\n\tcvt.u32.u64 {}, ~fo;\n", name,
                     expand(is_first ? "~fd" : "~fc"));
      if (!is_first) code += filled("\tor.b32 ~fd, ~fd, ~fc;\n");
    }
    code += filled("\tand.b32 ~fd, ~fd, {};\n", mask);
    code += filled(is_first_mask ? "\tsetp.ne.u32 ~fodd, ~fd, 0;\n"
                                 : "\tsetp.ne.or.u32 ~fodd, ~fd, 0, ~fodd;\n");
  }
  return code;
}

std::string CheckText::passed_limit(std::uint32_t number) {
  return filled("\n\tld.param.u32 {}, [{}+{}];\n\t", limit_register(number), kPassedLimits,
                sizeof(std::uint32_t) * number);
}

std::string CheckText::limit(const ElementLimit& limit, std::uint32_t number) {
  const std::string result = limit_register(number);
  if (!limit.least_of.empty()) {
    std::string least = filled("\n\tmov.b32 {}, {};\n", result, limit_register(limit.least_of[0]));
    for (const std::uint32_t other : std::span(limit.least_of).subspan(1))
      least += filled("\tmin.u32 {0}, {0}, {1};\n", result, limit_register(other));
    return least + "\t";
  }
  const Operand& pointer = *limit.pointer;
  std::string code =
      filled("\n\tld.param.u64 ~fo, [{}+{}];\n", pointer.parts[0].text, pointer.integer);
  if (limit.mask != 0)
    code += filled("\tcvt.u32.u64 ~fd, ~fo;\n\tand.b32 ~fd, ~fd, {};\n", limit.mask);
  if (limit.offset != 0) code += filled("\tadd.s64 ~fo, ~fo, {};\n", limit.offset);
  code += filled("\tld.const.u64 ~fl, [{}+{}];\n\tsetp.lt.u64 ~fr, ~fo, ~fl;\n", kFenceConstants,
                 offsetof(FenceConstants, low));
  if (limit.mask != 0) code += filled("\tsetp.ne.or.u32 ~fr, ~fd, 0, ~fr;\n");
  code += filled("\tld.const.u64 ~fl, [{}+{}];\n\tsub.u64 ~fl, ~fl, ~fo;\n", kFenceConstants,
                 offsetof(FenceConstants, end));
  // More than fit become the most that there are. Less than none become none: what the pointer
  // leads to may have been taken out since the launch was submitted.
  code += filled(
      "\tmov.b64 {{~fd, ~fc}}, ~fl;\n\tshf.r.clamp.b32 {1}, ~fd, ~fc, {0};\n"
      "\tsetp.ge.u32 ~fq, ~fc, {2};\n\tselp.b32 {1}, -1, {1}, ~fq;\n"
      "\tsetp.lt.s32 ~fq, ~fc, 0;\n\tselp.b32 {1}, 0, {1}, ~fq;\n",
      limit.shift, result, std::uint64_t{1} << limit.shift);
  // No neighbour of an index below it wraps.
  if (limit.is_signed) code += filled("\tmin.u32 {0}, {0}, {1};\n", result, kMostSigned);
  return code + filled("\tselp.b32 {0}, 0, {0}, ~fr;\n\t", result);
}

std::string CheckText::hoisted_register(std::uint32_t loop) {
  return filled("~fh{}", loop);
}

std::string CheckText::hoisted(const HoistedChecks& checks) const {
  const std::string result = hoisted_register(checks.loop);
  std::string code = "\n";
  std::vector<const Member*> done;
  for (const Member& member : checks.members) {
    const bool is_done = std::ranges::any_of(done, [&](const Member* other) {
      return other->place.number == member.place.number && other->space == member.space &&
             other->accesses == member.accesses;
    });
    if (is_done) continue;
    const std::string into = done.empty() ? result : expand("~fq");
    code += members_.fast_range(member, into) + members_.alignment(member, into);
    if (!done.empty()) code += filled("\tor.pred {0}, {0}, ~fq;\n", result);
    done.push_back(&member);
  }
  return code + "\t";
}

std::string CheckText::site(const Site& site) {
  at_ = site.at;
  std::string code = "\n";
  bool is_first = true;
  std::set<std::uint32_t> loops;
  for (const Member& member : site.members) {
    if (member.is_served) continue;
    if (member.loop) {
      loops.insert(*member.loop);
      continue;
    }
    code += members_.fast(member, is_first);
    is_first = false;
  }
  for (const std::uint32_t loop : loops) {
    code += is_first ? filled("\tmov.pred ~fp, {};\n", hoisted_register(loop))
                     : filled("\tor.pred ~fp, ~fp, {};\n", hoisted_register(loop));
    is_first = false;
  }
  const std::string label = next_label();
  code += filled("\t@!~fp bra {};\n", label);
  site_ending_ = ending_.is_in_place ? label + "_end" : std::string(kRowEnding);
  // What nobody comes back from takes the assembler less.
  const bool is_final = std::ranges::all_of(
      site.members, [&](const Member& member) { return fails_with_fast_path(member); });
  std::uint32_t number = 0;
  for (const Member& member : site.members) {
    const bool is_last = ++number == site.members.size();
    const std::string end = is_last ? label : fmt::format("{}_{}", label, number);
    const bool must_fail = is_last && is_final;
    if (!must_fail) code += skip(member.guard, end);
    code += exact(member, must_fail ? std::string_view() : end);
    if (!is_last) code += end + ":\n";
  }
  if (ending_.is_in_place) {
    code += site_ending_ + ":\n" +
            ending_in_place(ending_.kind, function_, ending_.number, true, endings_++);
  }
  return code + label + ":\n\t";
}

/// Whether the exact path lets pass nothing that the fast one does not.
bool CheckText::fails_with_fast_path(const Member& member) const {
  const bool follows = std::ranges::any_of(member.accesses, &CheckedAccess::follows_parameter);
  if (member.special || member.loop || follows || surroundings_.knows_words) return false;
  if (member.space == MemorySpace::kShared)
    return members_.is_narrow(member) && !surroundings_.has_own_shared();
  if (member.space != MemorySpace::kLocal || member.variable == nullptr) return false;
  const auto count = std::ranges::count_if(function_.variables, [&](const auto& variable) {
    return variable.space == ptx::Space::kLocal && variable.bytes != 0 &&
           !variable.name.starts_with(kReservedPrefix) && is_declared(function_, variable, at_);
  });
  const ptx::Variable& variable = *variable_named(module_, function_, *member.variable);
  return count == 1 && variable.space == ptx::Space::kLocal &&
         std::cmp_greater_equal(variable.bytes, member.high() - member.low());
}

/// Looks at every access of the member by itself, and goes to the ending or to `label`. No label:
/// one of them is surely refused.
std::string CheckText::exact(const Member& member, std::string_view label) {
  Exact here{.label = next_label(), .bytes = expand("~fs")};
  std::string code;
  std::string base = members_.base_of(member, code);
  // Of a local address the assembler takes the lower half only. A check that looked at the other
  // one would have it kept up to date in each turn of a loop.
  const bool is_local = member.space == MemorySpace::kLocal;
  if (is_local) {
    code += filled("\tcvt.u32.u64 ~fb, {};\n", base);
    base = expand("~fb");
  }
  const bool is_narrow_base = is_local || members_.is_narrow(member);
  const bool is_loop = member.accesses.size() > 1;
  const CheckedAccess& access = member.accesses.front();
  const std::size_t row = table_.size();
  if (is_loop) {
    code += filled(
        "\tmov.u32 ~fi, {};\n{}_next:\n\t.pragma \"nounroll\";\n\tmov.u64 ~ft, {};\n"
        "\tmad.wide.u32 ~ft, ~fi, {}, ~ft;\n"
        "\tld.global.v4.u32 {{~fd, ~fn, ~fw, ~fv}}, [~ft];\n",
        row, here.label, kAccessTable, kRowBytes);
    code += is_narrow_base ? filled("\tadd.u32 ~fd, ~fd, {};\n\tcvt.u64.u32 ~fa, ~fd;\n", base)
                           : filled("\tcvt.s64.s32 ~fa, ~fd;\n\tadd.s64 ~fa, ~fa, {};\n", base);
    code += filled("\tcvt.u64.u32 ~fs, ~fn;\n");
  } else {
    code += is_narrow_base
                ? filled("\tadd.u32 ~fd, {}, {};\n\tcvt.u64.u32 ~fa, ~fd;\n", base, access.offset)
                : filled("\tadd.s64 ~fa, {}, {};\n", base, access.offset);
    code += filled("\tmov.u32 ~fw, {};\n", flags_of(access));
    if (!member.special) here.bytes = std::to_string(access.bytes);
  }
  for (const CheckedAccess& each : member.accesses) {
    table_.push_back(fmt::format("{}, {}, {}, {}", static_cast<std::uint32_t>(each.offset),
                                 each.bytes, flags_of(each), each.line));
  }
  if (member.special) code += exact_size(*member.special, label);
  code += filled("\tcvt.u32.u64 ~fc, ~fa;\n");
  if (member.special && member.special->aligns_amount && member.special->amount != nullptr)
    code += filled("\tcvt.u32.u64 ~fd, ~fs;\n\tor.b32 ~fc, ~fc, ~fd;\n");
  code += filled(
      "\tshr.u32 ~fd, ~fw, {};\n\tand.b32 ~fc, ~fc, ~fd;\n"
      "\tsetp.ne.u32 ~fq, ~fc, 0;\n\t@~fq bra {}_odd;\n",
      kAlignShift, here.label);
  code += exact_space(member.space, here) + here.label + "_good:\n";
  if (is_loop) {
    code += filled("\tadd.u32 ~fi, ~fi, 1;\n\tsetp.lt.u32 ~fq, ~fi, {};\n\t@~fq bra {}_next;\n",
                   table_.size(), here.label);
  }
  code += label.empty() ? filled("\tbra {}_bad;\n", here.label) : fmt::format("\tbra {};\n", label);
  code += filled(
      "{0}_odd:\n\tmov.u32 ~fk, {1};\n\tbra {0}_row;\n{0}_bad:\n\tmov.u32 ~fk, {2};\n"
      "{0}_row:\n",
      here.label, static_cast<std::uint32_t>(Violation::kMisaligned),
      static_cast<std::uint32_t>(Violation::kRange));
  if (!is_loop) code += filled("\tmov.u32 ~fi, {};\n", row);
  code += filled("\tmov.u32 ~fn, 0;\n");
  if (member.special) code += filled("\tcvt.u32.u64 ~fn, ~fs;\n");
  return code + fmt::format("\tbra {};\n", site_ending_);
}

/// Leaves the bytes in ~fs; goes to `label` where there are none.
std::string CheckText::exact_size(const Access& access, std::string_view label) const {
  std::string code = members_.size_of(access);
  if (access.lanes != 32) {
    code += filled("\tmov.u32 ~fc, %laneid;\n\tsetp.ge.u32 ~fq, ~fc, {};\n\t@~fq bra {};\n",
                   access.lanes, label);
  }
  if (access.amount != nullptr)
    code += filled("\tsetp.eq.u64 ~fq, ~fs, 0;\n\t@~fq bra {};\n", label);
  return code;
}

/// Goes on behind the text, or to the place's _good or _bad.
std::string CheckText::exact_space(MemorySpace space, const Exact& here) const {
  const std::string scan =
      filled(kScan, here.label, here.label + "_bad", offsetof(FenceConstants, table),
             offsetof(FenceTable, range_count), offsetof(FenceTable, ranges), here.bytes);
  switch (space) {
    case MemorySpace::kGlobal:
    case MemorySpace::kHandle:
      return scan;
    case MemorySpace::kShared:
      return exact_shared(here);
    case MemorySpace::kLocal:
      return exact_variables(ptx::Space::kLocal, here);
    case MemorySpace::kConst:
      return exact_variables(ptx::Space::kConst, here);
    case MemorySpace::kGeneric:
      break;
  }
  const std::string good = fmt::format("\tbra {}_good;\n", here.label);
  std::string code = filled(
      "\tisspacep.shared ~fq, ~fa;\n\t@~fq bra {0}_shared;\n"
      "\tisspacep.local ~fq, ~fa;\n\t@~fq bra {0}_local;\n",
      here.label);
  code += parameters(here) + scan + good;
  code += filled("{}_shared:\n\tcvta.to.shared.u64 ~fa, ~fa;\n", here.label) + exact_shared(here) +
          good;
  return code + filled("{}_local:\n\tcvta.to.local.u64 ~fa, ~fa;\n", here.label) +
         exact_variables(ptx::Space::kLocal, here);
}

/// Reads of the kernel's parameters by their generic address.
std::string CheckText::parameters(const Exact& here) const {
  if (!surroundings_.reads_parameters || function_.parameters.empty()) return {};
  std::string code = filled(
      "\tand.b32 ~fd, ~fw, 1;\n\tsetp.ne.u32 ~fq, ~fd, 0;\n"
      "\t@~fq bra {}_writes;\n",
      here.label);
  for (const ptx::Variable& parameter : function_.parameters) {
    code += filled("\tmov.b64 ~fo, {};\n\tcvta.param.u64 ~fo, ~fo;\n", parameter.name);
    code += filled(kWithin, expand("~fo"), parameter.bytes, here.label + "_good", here.bytes);
  }
  return code + here.label + "_writes:\n";
}

std::string CheckText::exact_shared(const Exact& here) const {
  const std::string bad = here.label + "_bad";
  std::string code = filled(
      "\tcvt.u64.u32 ~fl, {};\n\tsetp.gt.u64 ~fq, ~fa, ~fl;\n\t@~fq bra {};\n"
      "\tsub.u64 ~fl, ~fl, ~fa;\n\tsetp.lt.u64 ~fq, ~fl, {};\n"
      "\t@~fq bra {};\n",
      expand(kTotalShared), bad, here.bytes, bad);
  for (const OwnWords& words : surroundings_.own) {
    code += filled("\tmov.u32 ~fd, {};\n", words.name);
    code += filled(kOverlaps, words.bytes, bad, here.bytes);
  }
  if (surroundings_.knows_words) {
    code += filled("\tld.shared.u32 ~fd, [{}+8];\n", kBlockFacts);
    code += filled(kOverlaps, kWorkerWordBytes, bad, here.bytes);
  }
  return code;
}

std::string CheckText::exact_variables(ptx::Space space, const Exact& here) const {
  std::string code;
  const std::string good = here.label + "_good";
  const auto& variables = space == ptx::Space::kLocal ? function_.variables : module_.variables;
  for (const ptx::Variable& variable : variables) {
    const bool is_own = variable.name.starts_with(kReservedPrefix);
    if (variable.space != space || variable.bytes == 0 || is_own) continue;
    const bool can_name = space == ptx::Space::kLocal ? is_declared(function_, variable, at_)
                                                      : variable.span.begin < function_.span.begin;
    if (!can_name) continue;
    code += filled(kWithin, variable.name, variable.bytes, good, here.bytes);
  }
  if (space == ptx::Space::kLocal && surroundings_.knows_words) {
    code += filled(
        "\tld.shared.u64 ~fl, [{0}+16];\n\tsub.u64 ~fl, ~fa, ~fl;\n"
        "\tld.shared.u64 ~fo, [{0}+24];\n\tsetp.lt.u64 ~fq, ~fl, ~fo;\n"
        "\tsub.u64 ~fo, ~fo, ~fl;\n\tsetp.ge.and.u64 ~fq, ~fo, {1}, ~fq;\n"
        "\t@~fq bra {2};\n",
        kBlockFacts, here.bytes, good);
  }
  return code + fmt::format("\tbra {}_bad;\n", here.label);
}

std::string CheckText::hint(const Instruction& instruction, const Access& access,
                            std::string& label) {
  const Operand& address = *access.address;
  Member member{.place = {.base = address.parts.empty() ? &address : &address.parts[0],
                          .number = std::nullopt,
                          .offset = 0,
                          .is_generic = false},
                .space = access.space,
                .guard = nullptr,
                .accesses = {{.offset = address.integer, .bytes = access.bytes}}};
  if (access.amount != nullptr) member.special = access;
  label = next_label();
  return "\n" + skip(instruction.guard ? &*instruction.guard : nullptr, label) +
         members_.fast_range(member, expand("~fp")) + filled("\t@~fp bra {};\n\t", label);
}

std::string CheckText::handle(const Instruction& instruction, const Operand& handle) {
  const std::string label = next_label();
  const std::string name = register_text(handle);
  std::string code = "\n" + skip(instruction.guard ? &*instruction.guard : nullptr, label);
  for (std::size_t i = 0; i < kFastHandles; ++i) {
    code += filled("\tld.const.u64 ~fl, [{}+{}];\n", kFenceConstants,
                   offsetof(FenceConstants, fast_handles) + 8 * i);
    code += i == 0 ? filled("\tsetp.ne.u64 ~fp, {}, ~fl;\n", name)
                   : filled("\tsetp.ne.and.u64 ~fp, {}, ~fl, ~fp;\n", name);
  }
  code += filled("\tsetp.eq.or.u64 ~fp, {}, 0, ~fp;\n\t@!~fp bra {};\n\tmov.b64 ~fa, {};\n", name,
                 label, name);
  code += filled(
      "\tsetp.eq.u64 ~fq, ~fa, 0;\n\t@~fq bra {0}_bad;\n"
      "\tld.const.u64 ~ft, [{1}+{2}];\n\tsetp.eq.u64 ~fq, ~ft, 0;\n\t@~fq bra {0}_bad;\n"
      "\tld.volatile.global.u32 ~fc, [~ft+{3}];\n"
      "{0}_scan:\n\t.pragma \"nounroll\";\n\tsetp.eq.u32 ~fq, ~fc, 0;\n\t@~fq bra {0}_bad;\n"
      "\tld.volatile.global.u64 ~fl, [~ft+{4}];\n\tsetp.eq.u64 ~fq, ~fl, ~fa;\n"
      "\tadd.u64 ~ft, ~ft, 8;\n\tsub.u32 ~fc, ~fc, 1;\n\t@~fq bra {0};\n\tbra {0}_scan;\n"
      "{0}_bad:\n",
      label, kFenceConstants, offsetof(FenceConstants, table), offsetof(FenceTable, handles),
      offsetof(FenceTable, handle));
  return code + fail_by(Violation::kHandle, instruction.line) + label + ":\n\t";
}

std::string CheckText::jump(const Instruction& branch) {
  const Operand& index = branch.operands[0];
  const ptx::Label& table = function_.labels[branch.operands[1].index];
  const std::string label = next_label();
  std::string code = "\n" + skip(branch.guard ? &*branch.guard : nullptr, label);
  const bool is_number = index.kind == Operand::Kind::kInteger;
  const std::string name = is_number ? std::to_string(index.integer) : register_text(index);
  code += filled(
      "\tmov.b32 ~fc, {};\n\tsetp.lt.u32 ~fp, ~fc, {};\n\t@~fp bra {};\n"
      "\tcvt.u64.u32 ~fa, ~fc;\n",
      name, table.targets.size(), label);
  return code + fail_by(Violation::kBranch, branch.line) + label + ":\n\t";
}

std::string CheckText::barrier(const Instruction& instruction, const InstructionEffect& effect) {
  const std::string label = next_label();
  std::string code = "\n" + skip(instruction.guard ? &*instruction.guard : nullptr, label);
  code += filled("\tmov.u32 ~fc, 0;\n");
  if (effect.barrier != nullptr)
    code += filled("\tshr.u32 ~fc, {}, 4;\n", register_text(*effect.barrier));
  code += filled("\tsetp.ne.u32 ~fp, ~fc, 0;\n");
  if (effect.barrier_threads != nullptr) {
    // A multiple of 32 up to 1024, and not 0: one less is below 1024, and its last bits are ones.
    code += filled(
        "\tsub.u32 ~fc, {}, 1;\n\tsetp.ge.or.u32 ~fp, ~fc, 1024, ~fp;\n"
        "\tand.b32 ~fc, ~fc, 31;\n\tsetp.ne.or.u32 ~fp, ~fc, 31, ~fp;\n",
        register_text(*effect.barrier_threads));
  }
  code += filled("\t@!~fp bra {};\n\tmov.u64 ~fa, 0;\n", label);
  return code + fail_by(Violation::kBarrier, instruction.line) + label + ":\n\t";
}

std::string CheckText::warp(const WarpLook& look) {
  const Instruction& instruction = function_.instructions[look.at];
  const std::string label = next_label();
  std::string code = "\n" + skip(instruction.guard ? &*instruction.guard : nullptr, label);
  if (look.is_by_block) {
    code += filled("\t@~fwhole bra.uni {};\n", label);
  } else {
    // Lanes that have ended are not counted, nor waited for.
    code += filled(
        "\tmov.pred ~fp, 1;\n\tvote.sync.ballot.b32 ~fc, ~fp, -1;\n"
        "\tsetp.eq.u32 ~fp, ~fc, -1;\n\t@~fp bra {};\n",
        label);
  }
  code += filled("\tmov.u64 ~fa, 0;\n");
  return code + fail_by(Violation::kWarp, instruction.line) + label + ":\n\t";
}

std::string CheckText::look(const Wait& wait) {
  constexpr std::uint32_t kTurns = 1024;  // from look to look
  constexpr std::uint32_t kSlowTurns = 32;
  const std::string label = filled("$fw{}", wait.at);
  const std::string leave = ending_.is_in_place ? leaving_in_place(ending_.kind, endings_++)
                                                : fmt::format("\tbra {};\n", kQuietEnding);
  return filled(
             "\n\tadd.u32 {0}, {0}, {1};\n\tsetp.lt.u32 ~fp, {0}, {2};\n\t@~fp bra {3};\n"
             "\tmov.u32 {0}, 0;\n\tld.const.u64 ~ft, [{4}+{5}];\n\tsetp.eq.u64 ~fp, ~ft, 0;\n"
             "\t@~fp bra {3};\n\tld.volatile.global.u32 ~fc, [~ft+{6}];\n"
             "\tsetp.eq.u32 ~fp, ~fc, 0;\n\t@~fp bra {3};\n",
             expand(kTurnRegister), wait.is_slow ? kTurns / kSlowTurns : 1, kTurns, label,
             kFenceConstants, offsetof(FenceConstants, table), offsetof(FenceTable, ended)) +
         leave + label + ":\n\t";
}

std::string CheckText::end(const Instruction& instruction, Violation kind) {
  const Operand* guard = instruction.guard ? &*instruction.guard : nullptr;
  const std::string label = next_label();
  return skip(guard, label) + filled("\tmov.u64 ~fa, 0;\n") + fail_by(kind, instruction.line) +
         label + ":\n";
}

}  // namespace slate::injector
