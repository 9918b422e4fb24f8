#include "injector/forms/settled_sums.h"

#include <fmt/format.h>

#include <set>

#include "injector/analysis/contraction.h"
#include "injector/ptx/printer.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// The type of a register that holds a value of this one.
std::string_view register_type(std::string_view type) {
  if (type == "f16" || type == "bf16") return "b16";
  if (type == "f16x2" || type == "bf16x2") return "b32";
  return type == "f32x2" ? "b64" : type;
}

class FunctionSettler {
 public:
  FunctionSettler(const ptx::Module& module, const ptx::Function& function,
                  std::vector<ptx::Edit>& edits)
      : module_(module),
        function_(function),
        contraction_(find_contraction(function, ControlFlow(function))),
        edits_(edits) {}

  /// Whether sums are left open.
  bool settle() {
    for (const Fusion& fusion : contraction_.open) done_.insert({fusion.sum, fusion.product});
    for (const Fusion& fusion : contraction_.fusions) {
      write_fused(fusion);
      done_.insert(fusion.sum);
      if (fusion.only && done_.insert(fusion.product).second) {
        edits_.push_back(ptx::remove(function_.instructions[fusion.product].span));
      }
    }
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
      if (!done_.contains(i)) name_rounding(function_.instructions[i]);
    }
    if (!registers_.empty()) {
      edits_.push_back(ptx::insert_at(function_.body.begin + 1, registers_));
    }
    return !contraction_.open.empty();
  }

 private:
  std::string text_of(const Operand& operand) const {
    return module_.text.substr(operand.span.begin, operand.span.end - operand.span.begin);
  }

  void name_rounding(const Instruction& instruction) {
    // A loose product does not join a sum that rounds by itself; sums that are left open it might.
    const bool is_product = !contraction_.open.empty() && !loose_product(instruction).empty();
    if (loose_sum(instruction).empty() && !is_product) return;
    const auto at =
        instruction.opcode_span.begin + static_cast<std::uint32_t>(instruction.opcode.size());
    edits_.push_back(ptx::insert_at(at, ".rn"));
  }

  void write_fused(const Fusion& fusion) {
    const Instruction& sum = function_.instructions[fusion.sum];
    const Instruction& product = function_.instructions[fusion.product];
    const std::string_view type = loose_sum(sum);
    const bool subtracts = sum.opcode == "sub";
    std::string one = text_of(product.operands[1]);
    std::string other = text_of(product.operands[2]);
    std::string added = text_of(sum.operands[fusion.operand == 1 ? 2 : 1]);
    if (fusion.negated != (subtracts && fusion.operand == 2)) {
      // Of the literal, if one is: as ptxas does it.
      const bool is_literal = product.operands[2].kind == Operand::Kind::kFloat;
      std::string& factor = is_literal ? other : one;
      factor = negated(sum, product.operands[is_literal ? 2 : 1], type);
    }
    if (subtracts && fusion.operand == 1) added = negated(sum, sum.operands[2], type);
    edits_.push_back(
        ptx::replace({sum.opcode_span.begin, sum.span.end},
                     fmt::format("fma.rn{}{}.{} {}, {}, {}, {};", sum.has("ftz") ? ".ftz" : "",
                                 sum.has("sat") ? ".sat" : "", type, text_of(sum.operands[0]), one,
                                 other, added)));
  }

  /// The negative of `value`: a literal, or a register of its own that is written before the sum.
  std::string negated(const Instruction& sum, const Operand& value, std::string_view type) {
    const auto bits = static_cast<std::uint64_t>(value.integer);
    if (value.float_bits == 32) return fmt::format("0f{:08X}", bits ^ (std::uint64_t{1} << 31));
    if (value.float_bits == 64) return fmt::format("0d{:016X}", bits ^ (std::uint64_t{1} << 63));
    std::string name = fmt::format("%slate_negated{}", negations_++);
    registers_ += fmt::format("\n\t.reg .{} {};", register_type(type), name);
    edits_.push_back(ptx::insert_at(sum.span.begin,
                                    fmt::format("neg.{} {}, {};\n\t", type, name, text_of(value))));
    return name;
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Contraction contraction_;
  std::vector<ptx::Edit>& edits_;
  std::set<std::uint32_t> done_;  // instructions that stay as they are, or are written already
  std::string registers_;         // their declarations
  std::uint32_t negations_ = 0;
};

}  // namespace

Result<SettledModule> settle_sums(const ptx::Module& module, const std::vector<bool>& which) {
  std::vector<bool> open(module.functions.size(), false);
  std::vector<ptx::Edit> edits;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!which[i] || !module.functions[i].has_body) continue;
    open[i] = FunctionSettler(module, module.functions[i], edits).settle();
  }
  auto text = ptx::apply_edits(module, std::move(edits));
  if (!text) return std::unexpected(text.error());
  return SettledModule{.ptx = std::move(*text), .open = std::move(open)};
}

}  // namespace slate::injector
