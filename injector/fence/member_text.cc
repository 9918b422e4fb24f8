#include "injector/fence/member_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "injector/fence/fence_table.h"
#include "injector/forms/placed_variables.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {

using ptx::Operand;
using ptx::Reference;

std::string register_text(const Operand& operand) {
  std::string text(operand.text);
  if (operand.component != 0) (text += '.') += operand.component;
  return text;
}

std::string shared_register(std::size_t place) {
  return filled("~fsh{}", place);
}

std::string shared_address_text(std::string_view variable, std::size_t place) {
  return filled("\tld.const.u32 ~fd, [{}+{}];\n\tmov.u32 ~fn, {};\n\tadd.u32 {}, ~fn, ~fd;\n",
                kFenceConstants, offsetof(FenceConstants, zero), variable, shared_register(place));
}

std::string limit_register(std::uint32_t number) {
  return filled("~fe{}", number);
}

std::string copy_register(std::uint32_t number) {
  return filled("~fx{}", number);
}

/// Whether addresses are of 32 bits.
bool MemberText::is_narrow(const Member& member) const {
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
std::string MemberText::base_of(const Member& member, std::string& prepare) const {
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

namespace {

/// The row of the table of variables that the operand in brackets reads.
std::uint64_t row_of(const Operand& operand) {
  return static_cast<std::uint64_t>(operand.integer) / sizeof(std::uint64_t);
}

}  // namespace

std::string total_shared_text(std::uint32_t reserved) {
  return filled("\tmov.u32 {0}, %total_smem_size;\n\tadd.u32 {0}, {0}, {1};\n",
                expand(kTotalShared), reserved);
}

std::uint64_t MemberText::variable_bytes(const Member& member, ptx::Space space) const {
  if (member.variable == nullptr) return 0;
  if (!member.variable->parts.empty()) {
    const TabledVariable& tabled = surroundings_.tabled[row_of(*member.variable)];
    const bool is_refused =
        tabled.is_constant && std::ranges::any_of(member.accesses, &CheckedAccess::writes);
    return space == ptx::Space::kGlobal && !is_refused ? tabled.bytes : 0;
  }
  const ptx::Variable& variable = *variable_named(module_, function_, *member.variable);
  return variable.space == space ? variable.bytes : 0;
}

/// Leaves the address of the member's variable in ~fl.
std::string MemberText::variable_address(const Member& member) const {
  if (member.variable->parts.empty()) return filled("\tmov.u64 ~fl, {};\n", member.variable->text);
  return filled("\tld.const.u64 ~fl, [{}+{}];\n", kVariableTable, member.variable->integer);
}

std::string MemberText::size_of(const Access& access) const {
  if (access.amount == nullptr) return filled("\tmov.u64 ~fs, {};\n", access.bytes);
  return filled("\tmad.wide.u32 ~fs, {}, {}, {};\n", register_text(*access.amount), access.scale,
                access.bytes);
}

std::string MemberText::fast_range(const Member& member, std::string_view result) const {
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

std::string MemberText::fast_global(const Member& member, std::string_view result) const {
  if (member.index) {
    return filled("\tsetp.ge.u32 {}, {}, {};\n", result, copy_register(member.index->copy),
                  limit_register(member.index->limit));
  }
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
    return code + variable_address(member) +
           filled("\tsub.u64 ~fo, {}, ~fl;\n\tsetp.gt.u64 {}, ~fo, {};\n", from, result,
                  variable - static_cast<std::uint64_t>(high - low));
  }
  code += filled(
      "\tld.const.u64 ~fl, [{}+{}];\n\tsub.u64 ~fo, {}, ~fl;\n"
      "\tld.const.u64 ~fl, [{}+{}];\n\tsetp.ge.u64 {}, ~fo, ~fl;\n",
      kFenceConstants, offsetof(FenceConstants, low), from, kFenceConstants,
      offsetof(FenceConstants, size), result);
  if (is_open && member.special->most == 0) {
    code += filled("\tsub.u64 ~ft, ~fl, ~fo;\n\tsetp.gt.or.u64 {0}, ~fs, ~ft, {0};\n", result);
  } else if (high - low > static_cast<std::int64_t>(kFenceSlack)) {
    code += filled("\tsub.u64 ~ft, ~fl, ~fo;\n\tsetp.lt.or.u64 {0}, ~ft, {1}, {0};\n", result,
                   high - low);
  }
  return code;
}

/// In all of the block's memory. Where some of that is slate's: in the variable that the address
/// seems to come from, or in front of slate's words; where the kernel has dynamic shared memory,
/// behind them, too.
std::string MemberText::fast_shared(const Member& member, std::string_view result) const {
  std::string code;
  const std::string base = base_of(member, code);
  const bool is_open =
      member.special && member.special->amount != nullptr && member.special->most == 0;
  const std::int64_t low = member.low();
  std::int64_t span = member.high() - low;
  if (member.special && member.special->most != 0) span = member.special->most;
  const std::uint64_t variable = variable_bytes(member, ptx::Space::kShared);
  const bool is_in_variable = is_narrow(member) && !is_open && surroundings_.has_own_shared() &&
                              variable != 0 && std::cmp_greater_equal(variable, span);
  if (is_in_variable) {
    const auto known = std::ranges::find(surroundings_.shared, member.variable->text);
    if (known == surroundings_.shared.end()) {
      code += filled("\tmov.u32 ~fn, {};\n\tsub.u32 ~fn, {}, ~fn;\n", member.variable->text, base);
    } else {
      const auto place = static_cast<std::size_t>(known - surroundings_.shared.begin());
      code += filled("\tsub.u32 ~fn, {}, {};\n", base, shared_register(place));
    }
    return code + filled("\tadd.u32 ~fd, ~fn, {};\n\tsetp.gt.u32 {}, ~fd, {};\n", low, result,
                         variable - static_cast<std::uint64_t>(span));
  }
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
  const std::string total = filled("\tmov.u32 ~fn, {};\n", expand(kTotalShared));
  if (!surroundings_.has_own_shared()) return code + total + compare(result) + wide;
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

/// Local memory and constants: within the variable that the address seems to come from. Of a local
/// address the assembler takes the lower 32 bits only.
std::string MemberText::fast_variable(const Member& member, std::string_view result) const {
  const auto space = member.space == MemorySpace::kLocal ? ptx::Space::kLocal : ptx::Space::kConst;
  const std::uint64_t bytes = variable_bytes(member, space);
  const auto span = static_cast<std::uint64_t>(member.high() - member.low());
  if (bytes < span || bytes == 0 || member.special) return filled("\tmov.pred {}, 1;\n", result);
  std::string code;
  const std::string base = base_of(member, code);
  if (space == ptx::Space::kLocal) {
    return code + filled(
                      "\tcvt.u32.u64 ~fd, {};\n\tmov.u64 ~fl, {};\n\tcvt.u32.u64 ~fn, ~fl;\n"
                      "\tsub.u32 ~fd, ~fd, ~fn;\n\tadd.u32 ~fd, ~fd, {};\n"
                      "\tsetp.gt.u32 {}, ~fd, {};\n",
                      base, member.variable->text, member.low(), result, bytes - span);
  }
  return code + filled(
                    "\tadd.s64 ~fo, {}, {};\n\tmov.u64 ~fl, {};\n\tsub.u64 ~fo, ~fo, ~fl;\n"
                    "\tsetp.gt.u64 {}, ~fo, {};\n",
                    base, member.low(), member.variable->text, result, bytes - span);
}

/// Adds to `result` whether an access may be misaligned.
std::string MemberText::alignment(const Member& member, std::string_view result) const {
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
std::string MemberText::fast(const Member& member, bool is_first) const {
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

}  // namespace slate::injector
