#include "injector/analysis/linear_values.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "injector/analysis/components.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {

using ptx::Instruction;
using ptx::Operand;

namespace {

/// Sums of more are not followed.
constexpr std::size_t kMostTerms = 8;

bool is_lasting(std::string_view special) {
  constexpr std::string_view kBeginnings[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid.", "%laneid"};
  return std::ranges::any_of(kBeginnings, [&](auto name) { return special.starts_with(name); });
}

std::string name_of(const Instruction& instruction) {
  std::string name(instruction.opcode);
  for (const std::string_view modifier : instruction.modifiers) (name += '.') += modifier;
  return name;
}

}  // namespace

LinearValues::LinearValues(const ptx::Function& function, const ControlFlow& flow,
                           const Registers& registers, const std::vector<std::uint32_t>& writes)
    : registers_(registers), sums_(registers.count()), numbers_(registers.count()) {
  std::vector<std::vector<std::uint32_t>> successors;
  for (const ControlFlow::Block& block : flow.blocks()) successors.push_back(block.successors);
  std::vector<bool> in_loop(successors.size(), false);
  for (const std::vector<std::uint32_t>& together : strong_components(successors)) {
    const auto& next = successors[together.front()];
    const bool is_loop =
        together.size() > 1 || std::ranges::find(next, together.front()) != next.end();
    for (const std::uint32_t b : together) in_loop[b] = is_loop;
  }
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    for (const Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::kSpecial) term(std::string(operand.text), 4);
    }
    bool once = !instruction.guard && !instruction.operands.empty();
    registers.for_each_write(instruction, [&](std::uint32_t r) { once &= writes[r] == 1; });
    if (once) look_at(instruction, in_loop[flow.block_of(i)]);
  }
}

/// In text order: what is written behind its use is not known there.
void LinearValues::look_at(const Instruction& instruction, bool in_loop) {
  std::optional<Sum> sum;
  const Operand& result = instruction.operands[0];
  if (result.kind == Operand::Kind::kSymbol) {
    sum = instruction.opcode == "ld" ? loaded_by(instruction) : std::nullopt;
    if (only_computes(instruction)) sum = made_by(instruction);
  }
  if (sum) {
    set(result, std::move(*sum));
  } else if (!in_loop) {
    for_each_result(instruction, [&](const Operand& one) {
      const auto r = registers_.of(one);
      if (r) set(one, term('r' + std::to_string(*r), registers_.bytes(*r)));
    });
  }
}

std::optional<LinearValues::Sum> LinearValues::loaded_by(const Instruction& load) {
  const auto& operands = load.operands;
  if (!load.has("param") || operands.size() != 2 || operands[1].parts.size() != 1 ||
      operands[1].parts[0].reference != ptx::Reference::kParameter) {
    return std::nullopt;
  }
  const std::string what = name_of(load) + ' ' + std::string(operands[1].parts[0].text) + '+' +
                           std::to_string(operands[1].integer);
  return term(what, ptx::type_bytes(load.type()));
}

void LinearValues::set(const Operand& result, Sum sum) {
  const auto r = registers_.of(result);
  if (!r || result.component != 0 || registers_.is_predicate(*r)) return;
  const auto next = static_cast<std::uint32_t>(numbered_.size());
  numbers_[*r] = numbered_.try_emplace(key_of(sum), next).first->second;
  sums_[*r] = std::move(sum);
}

std::optional<LinearValues::Sum> LinearValues::made_by(const Instruction& instruction) {
  const std::uint32_t bytes = ptx::type_bytes(
      instruction.type(instruction.opcode == "cvt" || instruction.opcode == "set" ? 1 : 0));
  if (bytes == 0) return std::nullopt;
  if (is_integer(instruction.type()) && (bytes == 4 || bytes == 8)) {
    auto sum = linear(instruction, bytes);
    if (sum && sum->terms.size() <= kMostTerms) return sum;
  }
  return opaque(instruction, bytes);
}

/// Of what keeps sums sums.
std::optional<LinearValues::Sum> LinearValues::linear(const Instruction& instruction,
                                                      std::uint32_t bytes) const {
  const std::string_view opcode = instruction.opcode;
  const auto& operands = instruction.operands;
  if (instruction.has("sat") || instruction.has("hi") || instruction.has("wide"))
    return std::nullopt;
  std::vector<Sum> inputs;
  if (opcode == "cvt") {
    const auto wide = of(operands[1], ptx::type_bytes(instruction.type()));
    return wide && wide->bytes == 8 && bytes == 4 ? std::optional(truncated(*wide)) : std::nullopt;
  }
  for (std::size_t i = 1; i < operands.size(); ++i) {
    auto input = of(operands[i], opcode == "shl" && i == 2 ? 4 : bytes);
    if (!input) return std::nullopt;
    inputs.push_back(std::move(*input));
  }
  const Sum zero{.terms = {}, .constant = 0, .bytes = bytes};
  if (opcode == "mov" && inputs.size() == 1) return inputs[0];
  if (opcode == "neg" && inputs.size() == 1) return added(zero, inputs[0], ~std::uint64_t{0});
  if (inputs.size() < 2) return std::nullopt;
  if (opcode == "add") return added(inputs[0], inputs[1]);
  if (opcode == "sub") return added(inputs[0], inputs[1], ~std::uint64_t{0});
  if (opcode == "shl" && inputs[1].terms.empty() && inputs[1].constant < 8 * bytes) {
    return added(zero, inputs[0], std::uint64_t{1} << inputs[1].constant);
  }
  if (opcode == "or") return with_bits(inputs[0], inputs[1]);
  if (opcode != "mul" && opcode != "mad") return std::nullopt;
  if (!inputs[1].terms.empty()) std::swap(inputs[0], inputs[1]);
  if (!inputs[1].terms.empty()) return std::nullopt;
  const Sum start = opcode == "mad" && inputs.size() == 3 ? inputs[2] : zero;
  return added(start, inputs[0], inputs[1].constant);
}

/// Bits that are surely not set yet are as good as added: compilers write so what follows a
/// multiple.
std::optional<LinearValues::Sum> LinearValues::with_bits(const Sum& sum, const Sum& bits) {
  if (!bits.terms.empty()) return std::nullopt;
  const auto width = std::bit_width(bits.constant);
  const std::uint64_t low = width < 64 ? (std::uint64_t{1} << width) - 1 : ~std::uint64_t{0};
  if ((sum.constant & bits.constant) != 0) return std::nullopt;
  for (const auto& [what, times] : sum.terms) {
    if ((times & low) != 0) return std::nullopt;
  }
  return added(sum, bits);
}

/// Something of its own, the same for the same instruction with the same inputs.
std::optional<LinearValues::Sum> LinearValues::opaque(const Instruction& instruction,
                                                      std::uint32_t bytes) {
  std::string what = name_of(instruction);
  std::optional<Sum> input;
  for (std::size_t i = 1; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::kFloat) return std::nullopt;
    const auto r = registers_.of(operand);
    if (r && sums_[*r]) {
      input = sums_[*r];
    } else {
      input = of(operand, 8);
    }
    if (!input || operand.negated || operand.component != 0) return std::nullopt;
    (what += ' ') += key_of(*input);
  }
  Sum sum = term(what, bytes);
  const bool widens = instruction.opcode == "cvt" && is_integer(instruction.type()) && bytes == 8 &&
                      ptx::type_bytes(instruction.type()) == 4;
  if (widens && input && input->bytes == 4) extended_.try_emplace(sum.terms.begin()->first, *input);
  return sum;
}

std::optional<LinearValues::Sum> LinearValues::of(const Operand& operand,
                                                  std::uint32_t bytes) const {
  if (operand.negated || operand.component != 0) return std::nullopt;
  if (operand.kind == Operand::Kind::kInteger) {
    const auto bits = static_cast<std::uint64_t>(operand.integer);
    return Sum{.terms = {}, .constant = bytes == 4 ? bits & 0xffffffffu : bits, .bytes = bytes};
  }
  if (operand.kind == Operand::Kind::kSpecial && is_lasting(operand.text)) {
    const auto known = terms_.find(std::string(operand.text));
    if (known == terms_.end()) return std::nullopt;
    return Sum{.terms = {{known->second, 1}}, .constant = 0, .bytes = 4};
  }
  const auto r = registers_.of(operand);
  if (!r || !sums_[*r] || sums_[*r]->bytes != bytes) return std::nullopt;
  return sums_[*r];
}

LinearValues::Sum LinearValues::term(const std::string& what, std::uint32_t bytes) {
  const auto next = static_cast<std::uint32_t>(terms_.size());
  return {
      .terms = {{terms_.try_emplace(what, next).first->second, 1}}, .constant = 0, .bytes = bytes};
}

/// The lower half.
LinearValues::Sum LinearValues::truncated(const Sum& sum) const {
  Sum half{.terms = {}, .constant = sum.constant & 0xffffffffu, .bytes = 4};
  for (const auto& [what, times] : sum.terms) {
    const auto narrow = extended_.find(what);
    const Sum one{.terms = {{what, 1}}, .constant = 0, .bytes = 4};
    half = added(std::move(half), narrow == extended_.end() ? one : narrow->second, times);
  }
  return half;
}

std::string LinearValues::key_of(const Sum& sum) {
  std::string key = std::to_string(sum.bytes) + ':' + std::to_string(sum.constant);
  for (const auto& [what, times] : sum.terms) {
    ((key += '+') += std::to_string(times) + '*') += std::to_string(what);
  }
  return key;
}

LinearValues::Sum LinearValues::added(Sum a, const Sum& b, std::uint64_t times) {
  const std::uint64_t mask = a.bytes == 4 ? 0xffffffffu : ~std::uint64_t{0};
  a.constant = (a.constant + times * b.constant) & mask;
  for (const auto& [what, count] : b.terms) {
    std::uint64_t& sum = a.terms[what];
    sum = (sum + times * count) & mask;
    if (sum == 0) a.terms.erase(what);
  }
  return a;
}

}  // namespace slate::injector
