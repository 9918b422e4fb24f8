#include "injector/forms/exit_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/analysis/facts.h"
#include "injector/analysis/scopes.h"
#include "injector/analysis/uniformity.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

using ptx::Instruction;

constexpr std::uint32_t kEnd = ControlFlow::kNone;

/// What copies may add to a kernel: as many instructions again, or so many.
constexpr std::size_t kFreeCopies = 256;
/// Under a predicate, instructions take time from those who do not leave.
constexpr std::size_t kMostGuarded = 8;

std::string guard_of(const Instruction& instruction) {
  if (!instruction.guard) return {};
  return fmt::format("@{}{} ", instruction.guard->negated ? "!" : "", instruction.guard->text);
}

}  // namespace

std::string_view ExitCode::text_of(ptx::Span span) const {
  return std::string_view(module_.text).substr(span.begin, span.end - span.begin);
}

std::uint32_t ExitCode::target_of(const Instruction& branch) const {
  const auto target = injector::target_of(function_, branch);
  return target && *target < function_.instructions.size() ? flow_.block_of(*target) : kEnd;
}

bool ExitCode::only_leaves(std::uint32_t block) const {
  const Instruction& first = function_.instructions[flow_.blocks()[block].first];
  return leaves(first) && !first.guard;
}

std::uint32_t ExitCode::behind(std::uint32_t block) const {
  return block + 1 < flow_.blocks().size() ? block + 1 : kEnd;
}

// --- Under a predicate

bool ExitCode::is_plain(std::uint32_t index) const {
  const Instruction& instruction = function_.instructions[index];
  const std::string_view opcode = instruction.opcode;
  return !instruction.guard && opcode != "brx" && opcode != "call" && opcode != "trap" &&
         !is_warp_wide(instruction) && scope_of(function_, index) == nullptr;
}

/// Names are known from their declaration on, which may stand anywhere in a body.
bool ExitCode::is_declared_at(const Instruction& instruction, std::uint32_t at) const {
  bool declared = true;
  for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
    if (operand.reference != ptx::Reference::kLocal) return;
    declared &=
        function_.variables[operand.index].span.begin < function_.instructions[at].span.begin;
  });
  return declared;
}

std::optional<std::string> ExitCode::guarded(std::uint32_t block, std::string_view guard,
                                             std::uint32_t at) const {
  std::string text;
  std::size_t count = 0;
  for (std::size_t steps = 0; steps <= flow_.blocks().size(); ++steps) {
    if (block == kEnd) return text;
    std::uint32_t next = behind(block);
    const ControlFlow::Block& code = flow_.blocks()[block];
    for (std::uint32_t i = code.first; i < code.end; ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (!is_plain(i)) return std::nullopt;
      if (leaves(instruction)) return text;
      if (instruction.opcode == "bra") {
        next = target_of(instruction);
        break;
      }
      if (++count > kMostGuarded || !is_declared_at(instruction, at)) return std::nullopt;
      const bool is_noticed = !may_be_repeated(instruction) ||
                              !mentions_.stay_within(instruction, code.first, code.end);
      if (is_noticed) text += fmt::format("@{} ", expand(guard));
      text.append(text_of(instruction.span)).append("\n\t");
    }
    block = next;
  }
  return std::nullopt;  // round and round
}

// --- Elsewhere

std::optional<std::string> ExitCode::copy(std::uint32_t block, const std::string& name) {
  std::string text = expand(name + ":\n");
  if (block == kEnd || only_leaves(block)) return text;
  const std::vector<std::uint32_t> blocks = blocks_from(block);
  if (blocks.front() != block) text += expand(fmt::format("\tbra {}_{};\n", name, block));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool follows = i + 1 < blocks.size() && blocks[i + 1] == blocks[i] + 1;
    const auto part = copy_of_block(blocks[i], name, follows);
    if (!part) return std::nullopt;
    text += *part;
  }
  if (copied_ > std::max(kFreeCopies, function_.instructions.size())) return std::nullopt;
  return text;
}

std::vector<std::uint32_t> ExitCode::blocks_from(std::uint32_t block) const {
  const std::vector<bool> reached = flow_.reachable_from({block});
  std::vector<std::uint32_t> found;
  for (std::uint32_t b = 0; b < reached.size(); ++b) {
    if (reached[b]) found.push_back(b);
  }
  return found;
}

std::optional<std::string> ExitCode::copy_of_block(std::uint32_t number, const std::string& name,
                                                   bool next_follows) {
  const ControlFlow::Block& block = flow_.blocks()[number];
  std::string text = expand(fmt::format("{}_{}:\n", name, number));
  for (std::uint32_t i = block.first; i < block.end; ++i, ++copied_) {
    const ptx::InnerScope* scope = scope_of(function_, i);
    if (scope == nullptr) {
      const auto one = copy_of(function_.instructions[i], name);
      if (!one) return std::nullopt;
      text += "\t" + *one + "\n";
      continue;
    }
    // In one piece, with its registers; jumps in it would have to be those of the copy.
    if (scope->first != i || scope->end > block.end || jumps_inside(*scope)) return std::nullopt;
    text.append("\t").append(text_of(scope->span)).append("\n");
    i = scope->end - 1;
  }
  const Instruction& last = function_.instructions[block.end - 1];
  const bool goes_elsewhere =
      (last.opcode == "bra" || last.opcode == "trap" || leaves(last)) && !last.guard;
  if (goes_elsewhere || next_follows) return text;
  const std::uint32_t next = behind(number);
  return text + expand(next == kEnd ? fmt::format("\tbra {}_out;\n", name)
                                    : fmt::format("\tbra {}_{};\n", name, next));
}

bool ExitCode::jumps_inside(const ptx::InnerScope& scope) const {
  return std::any_of(
      function_.instructions.begin() + scope.first, function_.instructions.begin() + scope.end,
      [](const Instruction& i) { return i.opcode == "bra" || i.opcode == "brx" || leaves(i); });
}

std::optional<std::string> ExitCode::copy_of(const Instruction& instruction,
                                             const std::string& name) const {
  if (instruction.opcode == "brx") return std::nullopt;
  if (leaves(instruction)) return guard_of(instruction) + expand(fmt::format("bra {}_out;", name));
  if (instruction.opcode != "bra") return std::string(text_of(instruction.span));
  const std::uint32_t target = target_of(instruction);
  return guard_of(instruction) + expand(target == kEnd ? fmt::format("bra {}_out;", name)
                                                       : fmt::format("bra {}_{};", name, target));
}

}  // namespace slate::injector
