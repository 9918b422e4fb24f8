#include "injector/fence/check_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "injector/fence/fence_table.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Reference;

constexpr std::size_t kRowBytes = 16;           // of kAccessTable
constexpr std::uint32_t kAlignShift = 8;        // of the alignment less 1 in a row's flags
constexpr std::uint64_t kWorkerWordBytes = 64;  // of __slate_s

std::string register_text(const Operand& operand) {
  std::string text(operand.text);
  if (operand.component != 0) (text += '.') += operand.component;
  return text;
}

std::uint32_t flags_of(const CheckedAccess& access) {
  return (access.align - 1) << kAlignShift | (access.writes ? kFenceWrites : 0);
}

/// A jump past what an instruction would not do.
std::string skip(const Operand* guard, std::string_view label) {
  if (guard == nullptr) return {};
  return fmt::format("\t@{}{} bra {};\n", guard->negated ? "" : "!", register_text(*guard), label);
}

/// Leads to the ending, with ~fa in place.
std::string fail_by(Violation kind, std::uint32_t line) {
  return filled(
      "\tmov.u32 ~fk, {};\n\tmov.u32 ~fn, 0;\n\tmov.u32 ~fw, 0;\n\tmov.u32 ~fv, {};\n"
      "\tbra {};\n",
      static_cast<std::uint32_t>(kind), line, kEnding);
}

/// Goes through the ranges of the fence table, from the last one down: few registers live here.
/// {0} and {1}, labels; {2}, {3} and {4}, offsets; {5}, number of bytes.
constexpr std::string_view kScan = R"(	ld.const.u64 ~ft, [__slate_fence+{2}];
	setp.eq.u64 ~fq, ~ft, 0;
	@~fq bra {1};
	and.b32 ~fw, ~fw, 1;
	mad.wide.u32 ~ft, ~fw, 4, ~ft;
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

std::string CheckText::next_label() {
  return filled("$f{}", labels_++);
}

std::string CheckText::look_at_parameters(const Plan& plan) {
  std::string code;
  for (const auto& [name, mask] : plan.aligned_parameters) {
    code += filled("\tld.param.u64 ~fo, [{}];\n\tcvt.u32.u64 ~fd, ~fo;\n\tand.b32 ~fd, ~fd, {};\n",
                   name, mask);
    code += filled(code.contains("setp") ? "\tsetp.ne.or.u32 ~fodd, ~fd, 0, ~fodd;\n"
                                         : "\tsetp.ne.u32 ~fodd, ~fd, 0;\n");
  }
  return code;
}

/// Whether addresses are of 32 bits.
bool CheckText::is_narrow(const Member& member) const {
  if (member.space != MemorySpace::kShared) return false;
  const Operand& base = *member.place.base;
  if (base.reference == Reference::kLocal && base.kind == Operand::Kind::kSymbol) {
    const ptx::Variable& variable = function_.variables[base.index];
    if (variable.space == ptx::Space::kReg) return ptx::type_bytes(variable.type) == 4;
  }
  if (base.reference == Reference::kParameter && base.kind == Operand::Kind::kSymbol)
    return ptx::type_bytes(function_.parameters[base.index].type) == 4;
  return true;
}

/// The register with the base, and what has to come before.
std::string CheckText::base_of(const Member& member, std::string& prepare) const {
  const Operand& base = *member.place.base;
  const bool is_narrow_base = is_narrow(member);
  const std::string mine = expand(is_narrow_base ? "~fb" : "~fz");
  const std::string_view move = is_narrow_base ? "mov.u32" : "mov.u64";
  if (base.kind != Operand::Kind::kSymbol) {
    prepare = fmt::format("\t{} {}, 0;\n", move, mine);
    return mine;
  }
  const bool is_variable = base.reference == Reference::kGlobal ||
                           (base.reference == Reference::kLocal &&
                            function_.variables[base.index].space != ptx::Space::kReg);
  if (!is_variable) return register_text(base);
  prepare = fmt::format("\t{} {}, {};\n", move, mine, base.text);
  return mine;
}

std::uint64_t CheckText::variable_bytes(const Member& member, ptx::Space space) const {
  if (member.variable == nullptr) return 0;
  const ptx::Variable& variable = member.variable->reference == Reference::kGlobal
                                      ? module_.variables[member.variable->index]
                                      : function_.variables[member.variable->index];
  return variable.space == space ? variable.bytes : 0;
}

std::string CheckText::size_of(const Access& access) const {
  if (access.amount == nullptr) return filled("\tmov.u64 ~fs, {};\n", access.bytes);
  return filled("\tmad.wide.u32 ~fs, {}, {}, {};\n", register_text(*access.amount), access.scale,
                access.bytes);
}

std::string CheckText::fast_range(const Member& member, std::string_view result) const {
  std::string code;
  if (member.special && member.special->amount != nullptr && member.special->most == 0)
    code = size_of(*member.special);
  switch (member.space) {
    case MemorySpace::kGlobal:
    case MemorySpace::kGeneric:
      return code + fast_global(member, result);
    case MemorySpace::kShared:
      return code + fast_shared(member, result);
    case MemorySpace::kLocal:
    case MemorySpace::kConst:
    case MemorySpace::kHandle:
      break;
  }
  return code + fast_variable(member, result);
}

std::string CheckText::fast_global(const Member& member, std::string_view result) const {
  std::string code;
  const std::string base = base_of(member, code);
  const bool is_open = member.special && member.special->amount != nullptr;
  const std::int64_t low = member.low();
  std::int64_t high = member.high();
  if (is_open) high = low + std::int64_t{member.special->most};
  const std::uint64_t variable = variable_bytes(member, ptx::Space::kGlobal);
  const bool is_variable = variable >= static_cast<std::uint64_t>(high - low) && variable != 0 &&
                           (!is_open || member.special->most != 0);
  const bool fits = low >= 0 && high <= static_cast<std::int64_t>(kFenceSlack);
  std::string from = base;
  if (low != 0 && (is_variable || !fits)) {
    code += filled("\tadd.s64 ~fo, {}, {};\n", base, low);
    from = expand("~fo");
  }
  if (is_variable) {
    return code +
           filled("\tmov.u64 ~fl, {};\n\tsub.u64 ~fo, {}, ~fl;\n\tsetp.gt.u64 {}, ~fo, {};\n",
                  member.variable->text, from, result,
                  variable - static_cast<std::uint64_t>(high - low));
  }
  code += filled(
      "\tld.const.u64 ~fl, [{}+{}];\n\tsub.u64 ~fo, {}, ~fl;\n"
      "\tld.const.u64 ~fl, [{}+{}];\n\tsetp.ge.u64 {}, ~fo, ~fl;\n",
      kFenceConstants, offsetof(FenceConstants, low), from, kFenceConstants,
      offsetof(FenceConstants, size), result);
  if (is_open && member.special->most == 0) {
    code += filled("\tsub.u64 ~ft, ~fl, ~fo;\n\tsetp.gt.or.u64 {0}, ~fs, ~ft, {0};\n", result);
  }
  return code;
}

/// In front of slate's own words, or where there are none, in all of the block's memory; where the
/// kernel has dynamic shared memory, behind them, too.
std::string CheckText::fast_shared(const Member& member, std::string_view result) const {
  std::string code;
  const std::string base = base_of(member, code);
  const bool is_open =
      member.special && member.special->amount != nullptr && member.special->most == 0;
  const std::int64_t low = member.low();
  std::int64_t span = member.high() - low;
  if (member.special && member.special->most != 0) span = member.special->most;
  std::string wide;
  if (is_narrow(member)) {
    code += filled("\tadd.u32 ~fd, {}, {};\n", base, low);
  } else {
    code += filled("\tadd.s64 ~fo, {}, {};\n\tcvt.u32.u64 ~fd, ~fo;\n\tshr.u64 ~fo, ~fo, 32;\n",
                   base, low);
    wide = filled("\tsetp.ne.or.u64 {0}, ~fo, 0, {0};\n", result);
  }
  // ~fd: first byte, ~fn: how many bytes are allowed from 0 on. It may be less than the span.
  const auto compare = [&](std::string_view into) {
    if (is_open) {
      return filled(
          "\tsetp.ge.u32 {0}, ~fd, ~fn;\n\tsub.u32 ~fn, ~fn, ~fd;\n"
          "\tcvt.u64.u32 ~fl, ~fn;\n\tsetp.lt.or.u64 {0}, ~fl, ~fs, {0};\n",
          into);
    }
    return filled(
        "\tmax.u32 ~fn, ~fn, {1};\n\tsub.u32 ~fn, ~fn, {1};\n"
        "\tsetp.ge.u32 {0}, ~fd, ~fn;\n",
        into, span - 1);
  };
  const std::string total = filled("\tmov.u32 ~fn, %total_smem_size;\n\tadd.u32 ~fn, ~fn, {};\n",
                                   surroundings_.reserved_shared);
  if (surroundings_.own.empty() && !surroundings_.knows_words)
    return code + total + compare(result) + wide;
  const bool both = surroundings_.has_dynamic && surroundings_.has_static;
  if (!surroundings_.has_dynamic || both) {
    code += surroundings_.knows_words ? filled("\tld.shared.u32 ~fn, [{}+8];\n", kBlockFacts)
                                      : filled("\tmov.u32 ~fn, -1;\n");
    for (const OwnWords& words : surroundings_.own)
      code += filled("\tmov.u32 ~fc, {};\n\tmin.u32 ~fn, ~fn, ~fc;\n", words.name);
    code += compare(result);
  }
  if (surroundings_.has_dynamic) {
    code += total;
    const std::string spare = expand("~fi");
    code += filled("\tmov.u32 {}, 0;\n", spare);
    for (const OwnWords& words : surroundings_.own) {
      code += filled("\tmov.u32 ~fc, {0};\n\tadd.u32 ~fc, ~fc, {1};\n\tmax.u32 {2}, {2}, ~fc;\n",
                     words.name, words.bytes, spare);
    }
    code += filled("\tsub.u32 ~fd, ~fd, {0};\n\tsub.u32 ~fn, ~fn, {0};\n", spare);
    code += compare(both ? expand("~fr") : std::string(result));
    if (both) code += filled("\tand.pred {0}, {0}, ~fr;\n", result);
  }
  return code + wide;
}

/// Local memory and constants: within the variable that the address seems to come from.
std::string CheckText::fast_variable(const Member& member, std::string_view result) const {
  const auto space = member.space == MemorySpace::kLocal ? ptx::Space::kLocal : ptx::Space::kConst;
  const std::uint64_t bytes = variable_bytes(member, space);
  const auto span = static_cast<std::uint64_t>(member.high() - member.low());
  if (bytes < span || bytes == 0 || member.special) return filled("\tmov.pred {}, 1;\n", result);
  std::string code;
  const std::string base = base_of(member, code);
  return code + filled(
                    "\tadd.s64 ~fo, {}, {};\n\tmov.u64 ~fl, {};\n\tsub.u64 ~fo, ~fo, ~fl;\n"
                    "\tsetp.gt.u64 {}, ~fo, {};\n",
                    base, member.low(), member.variable->text, result, bytes - span);
}

/// Adds to `result` whether an access may be misaligned.
std::string CheckText::alignment(const Member& member, std::string_view result) const {
  std::string code;
  if (std::ranges::any_of(member.accesses, &CheckedAccess::follows_parameter))
    code = filled("\tor.pred {0}, {0}, ~fodd;\n", result);
  if (member.special && member.special->aligns_amount && member.special->amount != nullptr) {
    code += filled(
        "\tcvt.u32.u64 ~fd, ~fs;\n\tand.b32 ~fd, ~fd, {1};\n"
        "\tsetp.ne.or.u32 {0}, ~fd, 0, {0};\n",
        result, member.special->align - 1);
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> tests;  // alignment, rest of the offset
  for (const CheckedAccess& access : member.accesses) {
    if (!access.tests_alignment) continue;
    tests.emplace(access.align, static_cast<std::uint32_t>(access.offset) & (access.align - 1));
  }
  std::string prepare;
  const std::string base = base_of(member, prepare);
  for (const auto& [align, rest] : tests) {
    const bool implied = std::ranges::any_of(tests, [&](const auto& other) {
      return other.first > align && (other.second & (align - 1)) == rest;
    });
    if (implied) continue;
    code += prepare;
    code += is_narrow(member) ? filled("\tadd.u32 ~fd, {}, {};\n", base, rest)
                              : filled("\tcvt.u32.u64 ~fd, {};\n", base);
    if (!is_narrow(member) && rest != 0) code += filled("\tadd.u32 ~fd, ~fd, {};\n", rest);
    code +=
        filled("\tand.b32 ~fd, ~fd, {1};\n\tsetp.ne.or.u32 {0}, ~fd, 0, {0};\n", result, align - 1);
  }
  return code;
}

/// Leaves in ~fp whether the exact path is needed.
std::string CheckText::fast(const Member& member, bool is_first) const {
  const std::string result = expand(is_first ? "~fp" : "~fq");
  std::string code = fast_range(member, result) + alignment(member, result);
  if (member.guard != nullptr) {
    const std::string guard = register_text(*member.guard);
    code += member.guard->negated
                ? filled("\tnot.pred ~fr, {1};\n\tand.pred {0}, {0}, ~fr;\n", result, guard)
                : filled("\tand.pred {0}, {0}, {1};\n", result, guard);
  }
  return is_first ? code : code + filled("\tor.pred ~fp, ~fp, ~fq;\n");
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
    code += fast_range(member, into) + alignment(member, into);
    if (!done.empty()) code += filled("\tor.pred {0}, {0}, ~fq;\n", result);
    done.push_back(&member);
  }
  return code + "\t";
}

std::string CheckText::site(const Site& site) {
  std::string code = "\n";
  bool is_first = true;
  std::set<std::uint32_t> loops;
  for (const Member& member : site.members) {
    if (member.loop) {
      loops.insert(*member.loop);
      continue;
    }
    code += fast(member, is_first);
    is_first = false;
  }
  for (const std::uint32_t loop : loops) {
    code += is_first ? filled("\tmov.pred ~fp, {};\n", hoisted_register(loop))
                     : filled("\tor.pred ~fp, ~fp, {};\n", hoisted_register(loop));
    is_first = false;
  }
  const std::string label = next_label();
  code += filled("\t@!~fp bra {};\n", label);
  std::uint32_t number = 0;
  for (const Member& member : site.members) {
    const bool is_last = ++number == site.members.size();
    const std::string end = is_last ? label : fmt::format("{}_{}", label, number);
    code += skip(member.guard, end) + exact(member, end);
    if (!is_last) code += end + ":\n";
  }
  return code + label + ":\n\t";
}

/// Looks at every access of the member by itself, and goes to the ending or to `label`.
std::string CheckText::exact(const Member& member, std::string_view label) {
  Exact here{.label = next_label(), .bytes = expand("~fs")};
  std::string code;
  const std::string base = base_of(member, code);
  const bool is_narrow_base = is_narrow(member);
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
  code += fmt::format("\tbra {};\n", label);
  code += filled(
      "{0}_odd:\n\tmov.u32 ~fk, {1};\n\tbra {0}_row;\n{0}_bad:\n\tmov.u32 ~fk, {2};\n"
      "{0}_row:\n",
      here.label, static_cast<std::uint32_t>(Violation::kMisaligned),
      static_cast<std::uint32_t>(Violation::kRange));
  if (!is_loop) code += filled("\tmov.u32 ~fi, {};\n", row);
  code += filled("\tmov.u32 ~fn, 0;\n");
  if (member.special) code += filled("\tcvt.u32.u64 ~fn, ~fs;\n");
  return code + fmt::format("\tbra {};\n", kRowEnding);
}

/// Leaves the bytes in ~fs; goes to `label` where there are none.
std::string CheckText::exact_size(const Access& access, std::string_view label) const {
  std::string code = size_of(access);
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
             offsetof(FenceTable, readable), offsetof(FenceTable, ranges), here.bytes);
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
      "\tmov.u32 ~fd, %total_smem_size;\n\tadd.u32 ~fd, ~fd, {};\n"
      "\tcvt.u64.u32 ~fl, ~fd;\n\tsetp.gt.u64 ~fq, ~fa, ~fl;\n\t@~fq bra {};\n"
      "\tsub.u64 ~fl, ~fl, ~fa;\n\tsetp.lt.u64 ~fq, ~fl, {};\n"
      "\t@~fq bra {};\n",
      surroundings_.reserved_shared, bad, here.bytes, bad);
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
         fast_range(member, expand("~fp")) + filled("\t@~fp bra {};\n\t", label);
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

std::string CheckText::barrier(const Instruction& instruction, const Effect& effect) {
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

std::string CheckText::end(const Instruction& instruction, Violation kind) {
  const Operand* guard = instruction.guard ? &*instruction.guard : nullptr;
  const std::string label = next_label();
  return skip(guard, label) + filled("\tmov.u64 ~fa, 0;\n") + fail_by(kind, instruction.line) +
         label + ":\n";
}

}  // namespace slate::injector
