#include "injector/analysis/contraction.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "injector/analysis/facts.h"
#include "injector/analysis/scopes.h"
#include "injector/analysis/uniformity.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::Operand;

constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

bool names_rounding(const Instruction& instruction) {
  constexpr std::array<std::string_view, 6> kRoundings = {"rn", "rz", "rm", "rp", "rna", "rs"};
  return std::ranges::any_of(kRoundings,
                             [&](std::string_view rounding) { return instruction.has(rounding); });
}

constexpr std::string_view kMixed = "mixed";

struct FusedType {
  std::string_view name;
  FloatTypes bit;
};
constexpr std::array<FusedType, 8> kTypes = {{{"f32", 1},
                                              {"f32x2", 1},
                                              {"f64", 2},
                                              {"f16", 4},
                                              {"f16x2", 4},
                                              {"bf16", 8},
                                              {"bf16x2", 8},
                                              {kMixed, 1 | 4 | 8}}};

FloatTypes bit_of(std::string_view type) {
  const auto found = std::ranges::find(kTypes, type, &FusedType::name);
  return found != kTypes.end() ? found->bit : FloatTypes{0};
}

/// Empty if it is none that can be fused.
std::string_view float_type(const Instruction& instruction) {
  std::string_view type;
  for (const std::string_view modifier : instruction.modifiers) {
    if (bit_of(modifier) == 0) continue;
    type = type.empty() ? modifier : kMixed;
  }
  return type;
}

/// A register by its whole name.
bool is_register(const ptx::Function& function, const Operand& operand) {
  return operand.kind == Operand::Kind::kSymbol && operand.reference == ptx::Reference::kLocal &&
         operand.component == 0 && operand.integer == 0 && !operand.negated &&
         function.variables[operand.index].space == ptx::Space::kReg &&
         function.variables[operand.index].vector == 1;
}

/// ptxas makes several blocks of these, or keeps what is on one side of them apart from the other.
bool ends_region(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "div") return !instruction.has("full") && !instruction.has("approx");
  if (opcode == "sqrt" || opcode == "rcp") return names_rounding(instruction);
  constexpr std::array<std::string_view, 6> kApart = {"call",    "rem",   "membar",
                                                      "pmevent", "brkpt", "fence"};
  if (std::ranges::find(kApart, opcode) != kApart.end()) return true;
  return instruction.guard.has_value() && !only_computes(instruction);
}

/// Straight code: blocks of which each is the only way to the next.
std::vector<std::vector<std::uint32_t>> straight_chains(const ptx::Function& function,
                                                        const ControlFlow& flow) {
  const auto& blocks = flow.blocks();
  std::vector<std::uint32_t> ways_in(blocks.size(), 0);
  if (!blocks.empty()) ways_in[0] = 1;
  for (const ControlFlow::Block& block : blocks) {
    for (const std::uint32_t next : block.successors) ++ways_in[next];
  }
  std::vector<std::uint32_t> next_of(blocks.size(), kNoIndex);
  std::vector<bool> continues(blocks.size(), false);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const ControlFlow::Block& block = blocks[b];
    if (block.exits || block.successors.size() != 1) continue;
    const std::uint32_t next = block.successors.front();
    if (next == b || ways_in[next] != 1 || function.instructions[block.end - 1].guard) continue;
    next_of[b] = next;
    continues[next] = true;
  }
  std::vector<std::vector<std::uint32_t>> chains;
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    if (continues[b]) continue;
    chains.emplace_back();
    for (std::uint32_t at = b; at != kNoIndex; at = next_of[at]) {
      for (std::uint32_t i = blocks[at].first; i < blocks[at].end; ++i) chains.back().push_back(i);
    }
  }
  return chains;
}

struct Product {
  struct Use {
    std::uint32_t sum = 0;  // into ContractionFinder::sums_
    std::uint32_t operand = 0;
    bool negated = false;
    bool nameable = true;  // the product's operands still have their values
  };
  std::uint32_t instruction = 0;
  std::string_view type;
  bool hidden = false;
  bool constant = false;                                         // one of its factors is
  bool escapes = false;                                          // not only sums need it
  bool copied = false;                                           // another register holds it too
  std::array<std::uint32_t, 2> versions = {kNoIndex, kNoIndex};  // of its operands
  std::vector<Use> uses;
};

struct Sum {
  std::uint32_t instruction = 0;
  std::array<std::uint32_t, 3> products = {kNoIndex, kNoIndex, kNoIndex};  // by operand
  bool fused = false;
};

class ContractionFinder {
 public:
  ContractionFinder(const ptx::Function& function, const ControlFlow& flow)
      : function_(function),
        chains_(straight_chains(function, flow)),
        places_(function.instructions.size()),
        registers_(function.variables.size()) {}

  Contraction find() {
    number_regions();
    count_mentions();
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) settle_register(i);
    for (const auto& chain : chains_) walk(chain);
    decide();
    return std::move(result_);
  }

 private:
  struct Place {
    std::uint32_t chain = 0, region = 0;
  };
  struct Register {
    std::uint32_t definitions = 0, reads = 0;  // in the function
    std::uint32_t reads_since = 0;             // its last definition in this chain
    std::uint32_t version = 0;                 // counts definitions of a chain
    std::uint32_t chain = kNoIndex;            // of its first definition
    bool stays_in_chain = false;               // named in no other, and written first
    std::uint32_t product = kNoIndex;          // that it holds
    bool negated = false;                      // it holds the negative
    bool fixed = false;                        // it holds the same wherever it is read
    bool constant = false;                     // machine code may name its value
  };

  Register* local(const Operand& operand) {
    const bool known =
        operand.reference == ptx::Reference::kLocal && operand.index < registers_.size();
    return known ? &registers_[operand.index] : nullptr;
  }
  Register& at(const Operand& operand) { return registers_[operand.index]; }
  const Register& at(const Operand& operand) const { return registers_[operand.index]; }

  /// With every register that it reads; one that is added to counts.
  void for_each_read(const Instruction& instruction, auto&& use) {
    const auto visit = [&](const Operand& operand) {
      if (local(operand) != nullptr) use(operand);
    };
    if (instruction.guard) visit(*instruction.guard);
    bool is_result = has_result(instruction) && instruction.opcode != "wgmma";
    for (const Operand& operand : instruction.operands) {
      const bool reads = !is_result || operand.kind == Operand::Kind::kAddress;
      is_result = false;
      if (!reads) continue;
      visit(operand);
      for_each_operand(operand.parts, visit);
    }
  }

  void number_regions() {
    std::uint32_t region = 0;
    for (std::uint32_t c = 0; c < chains_.size(); ++c) {
      ++region;
      for (const std::uint32_t index : chains_[c]) {
        if (ends_region(function_.instructions[index])) ++region;
        places_[index] = {.chain = c, .region = region};
      }
    }
  }

  void count_mentions() {
    for (const ptx::Variable& variable : function_.variables) ++names_[variable.name];
    for (std::uint32_t c = 0; c < chains_.size(); ++c) {
      for (const std::uint32_t index : chains_[c]) count_mentions(function_.instructions[index], c);
    }
  }

  void count_mentions(const Instruction& instruction, std::uint32_t chain) {
    for_each_read(instruction, [&](const Operand& operand) {
      Register& its = at(operand);
      ++its.reads;
      its.stays_in_chain = its.stays_in_chain && its.chain == chain;
    });
    for_each_result(instruction, [&](const Operand& operand) {
      Register* const its = local(operand);
      if (its == nullptr) return;
      if (its->definitions++ == 0 && its->reads == 0) {
        its->chain = chain;
        its->stays_in_chain = !instruction.guard && operand.component == 0;
      }
      its->stays_in_chain = its->stays_in_chain && its->chain == chain;
    });
  }

  /// What a register with one definition holds is known wherever it is read.
  void settle_register(std::uint32_t index) {
    const Instruction& instruction = function_.instructions[index];
    const auto& operands = instruction.operands;
    if (instruction.guard || operands.empty() || !is_register(function_, operands[0]) ||
        at(operands[0]).definitions != 1) {
      return;
    }
    Register& its = at(operands[0]);
    its.constant = makes_constant(instruction);
    if (const auto product = product_made_by(index)) {
      hold(its, *product, false);
      its.fixed = true;
    } else if (const Register* source = source_of(instruction);
               source != nullptr && source->fixed) {
      products_[source->product].copied = true;
      hold(its, source->product, source->negated != (instruction.opcode == "neg"));
      its.fixed = true;
    }
  }

  bool is_constant(const Operand& operand) const {
    return operand.kind == Operand::Kind::kFloat || operand.kind == Operand::Kind::kInteger ||
           (is_register(function_, operand) && at(operand).constant);
  }

  bool makes_constant(const Instruction& instruction) const {
    if (instruction.operands.size() != 2) return false;
    const Operand& source = instruction.operands[1];
    if (instruction.opcode == "mov" || instruction.opcode == "neg") return is_constant(source);
    if (instruction.opcode != "ld" || source.parts.size() != 1) return false;
    const ptx::Reference from = source.parts[0].reference;
    return (instruction.has("param") && function_.is_entry && from == ptx::Reference::kParameter) ||
           (instruction.has("const") && from == ptx::Reference::kGlobal);
  }

  /// The register that an unguarded `mov` or `neg` copies, if it holds a product.
  const Register* source_of(const Instruction& instruction) const {
    const bool is_neg = instruction.opcode == "neg";
    const auto& operands = instruction.operands;
    if ((!is_neg && instruction.opcode != "mov") || instruction.guard || operands.size() != 2 ||
        !is_register(function_, operands[0]) || !is_register(function_, operands[1])) {
      return nullptr;
    }
    const Register& source = at(operands[1]);
    if (source.product == kNoIndex) return nullptr;
    return !is_neg || float_type(instruction) == products_[source.product].type ? &source : nullptr;
  }

  std::optional<std::uint32_t> product_made_by(std::uint32_t index) {
    const Instruction& instruction = function_.instructions[index];
    std::string_view type = loose_product(instruction);
    const bool hidden = type.empty();
    if (hidden) type = hidden_product(instruction);
    const auto& operands = instruction.operands;
    if (type.empty() || instruction.guard ||
        operands.size() != (instruction.opcode == "rcp" ? 2 : 3) ||
        !is_register(function_, operands[0])) {
      return std::nullopt;
    }
    Product product{.instruction = index, .type = type, .hidden = hidden, .uses = {}};
    for (std::size_t i = 1; i <= 2 && i < operands.size(); ++i) {
      product.constant = product.constant || is_constant(operands[i]);
    }
    products_.push_back(std::move(product));
    return static_cast<std::uint32_t>(products_.size() - 1);
  }

  void note_versions(Product& product) const {
    const auto& operands = function_.instructions[product.instruction].operands;
    for (std::size_t i = 1; i <= 2 && i < operands.size(); ++i) {
      // What it writes to is no more what it was made of.
      if (is_register(function_, operands[i]) && operands[i].index != operands[0].index) {
        product.versions[i - 1] = at(operands[i]).version;
      }
    }
  }

  static void hold(Register& its, std::uint32_t product, bool negated) {
    its.product = product;
    its.negated = negated;
  }

  void walk(const std::vector<std::uint32_t>& chain) {
    for (const std::uint32_t index : chain) step(index);
    // Reads elsewhere may be of the same value.
    for (const std::uint32_t index : held_) {
      Register& its = registers_[index];
      if (its.product != kNoIndex && !its.stays_in_chain && its.reads != its.reads_since) {
        products_[its.product].escapes = true;
      }
      its.product = kNoIndex;
    }
    held_.clear();
  }

  void step(std::uint32_t index) {
    const Instruction& instruction = function_.instructions[index];
    const std::string_view sum_type = loose_sum(instruction);
    if (!sum_type.empty()) sums_.push_back({.instruction = index});
    const bool has_copy = source_of(instruction) != nullptr;
    const Register copied = has_copy ? *source_of(instruction) : Register{};
    const bool copies = has_copy && (at(instruction.operands[0]).fixed ||
                                     at(instruction.operands[0]).definitions > 1);
    for_each_read(instruction, [&](const Operand& operand) {
      Register& its = at(operand);
      ++its.reads_since;
      if (its.product == kNoIndex || copies) return;
      const bool is_used = !sum_type.empty() && use_in_sum(its, operand, index);
      if (!is_used) products_[its.product].escapes = true;
    });
    for_each_result(instruction, [&](const Operand& operand) { define(operand, instruction); });
    if (instruction.operands.empty() || !is_register(function_, instruction.operands[0])) return;
    Register& its = at(instruction.operands[0]);
    if (its.fixed) {
      if (products_[its.product].instruction == index) note_versions(products_[its.product]);
    } else if (copies) {
      products_[copied.product].copied = true;
      hold(its, copied.product, copied.negated != (instruction.opcode == "neg"));
      held_.push_back(instruction.operands[0].index);
    } else if (its.definitions > 1) {
      if (const auto product = product_made_by(index)) {
        note_versions(products_[*product]);
        hold(its, *product, false);
        held_.push_back(instruction.operands[0].index);
      }
    }
  }

  void define(const Operand& operand, const Instruction& instruction) {
    Register* const its = local(operand);
    if (its == nullptr || its->fixed) return;
    // What was there may be there still.
    const bool partly = instruction.guard.has_value() || operand.component != 0;
    if (its->product != kNoIndex && partly) products_[its->product].escapes = true;
    its->product = kNoIndex;
    its->reads_since = 0;
    ++its->version;
  }

  bool use_in_sum(const Register& its, const Operand& operand, std::uint32_t index) {
    const Instruction& instruction = function_.instructions[index];
    Product& product = products_[its.product];
    const Place& there = places_[product.instruction];
    if (instruction.operands.size() != 3 ||
        (!product.constant && there.region != places_[index].region) ||
        product.type != loose_sum(instruction) ||
        instruction.has("ftz") != function_.instructions[product.instruction].has("ftz")) {
      return false;
    }
    for (std::uint32_t i = 1; i <= 2 && i < instruction.operands.size(); ++i) {
      if (&instruction.operands[i] != &operand) continue;
      Sum& sum = sums_.back();
      // Both operands: the sum is a doubling, and stays one.
      if (std::ranges::find(sum.products, its.product) != sum.products.end()) return false;
      sum.products[i] = its.product;
      product.uses.push_back({.sum = static_cast<std::uint32_t>(sums_.size() - 1),
                              .operand = i,
                              .negated = its.negated,
                              .nameable = nameable(product, places_[index])});
      return true;
    }
    return false;
  }

  /// Whether a sum at `place` can name what the product is made of.
  bool nameable(const Product& product, const Place& place) const {
    if (product.hidden) return false;
    const Instruction& instruction = function_.instructions[product.instruction];
    bool has_register = false;
    for (std::size_t i = 1; i <= 2; ++i) {
      const Operand& operand = instruction.operands[i];
      if (operand.kind == Operand::Kind::kFloat) continue;
      // A scope may hide one register behind another of its name.
      if (!is_register(function_, operand) ||
          names_.at(function_.variables[operand.index].name) != 1) {
        return false;
      }
      has_register = true;
      const Register& its = at(operand);
      const bool same = place.chain == places_[product.instruction].chain &&
                        its.version == product.versions[i - 1];
      if (its.definitions != 1 && !same) return false;
    }
    return has_register;
  }

  // --- What ptxas does: first the products with one use, then those with several

  void decide() {
    for (const Sum& sum : sums_) {
      for (const std::uint32_t p : sum.products) {
        if (p == kNoIndex || products_[p].escapes || products_[p].uses.size() != 1) continue;
        fuse(products_[p]);
        break;
      }
    }
    for (const Sum& sum : sums_) {
      for (const std::uint32_t p : sum.products) {
        if (sum.fused || p == kNoIndex || products_[p].escapes) continue;
        if (products_[p].uses.size() > 1 && all_free(products_[p])) fuse(products_[p]);
      }
    }
    std::ranges::sort(result_.fusions, {}, &Fusion::sum);
  }

  bool all_free(const Product& product) const {
    return std::ranges::none_of(product.uses,
                                [&](const Product::Use& use) { return sums_[use.sum].fused; });
  }

  void fuse(const Product& product) {
    const bool all_nameable = std::ranges::all_of(product.uses, &Product::Use::nameable);
    for (const Product::Use& use : product.uses) {
      sums_[use.sum].fused = true;
      (all_nameable ? result_.fusions : result_.open)
          .push_back({.product = product.instruction,
                      .sum = sums_[use.sum].instruction,
                      .operand = use.operand,
                      .negated = use.negated,
                      .only = !product.copied});
    }
  }

  const ptx::Function& function_;
  const std::vector<std::vector<std::uint32_t>> chains_;
  std::vector<Place> places_;                                  // by instruction
  std::vector<Register> registers_;                            // by index into Function::variables
  std::unordered_map<std::string_view, std::uint32_t> names_;  // how many registers have it
  std::vector<Product> products_;
  std::vector<Sum> sums_;
  std::vector<std::uint32_t> held_;  // registers, not fixed, that held a product in this chain
  Contraction result_;
};

/// Multiplying by one is none, and ptxas leaves it out.
bool is_unit(const Operand& operand) {
  return operand.kind == Operand::Kind::kFloat &&
         (operand.floating == 1.0 || operand.floating == -1.0);
}

/// Follows products through what copies them, whatever the order.
class MeetingFinder {
 public:
  explicit MeetingFinder(const ptx::Function& function)
      : function_(function),
        reaching_(function.variables.size(), 0),
        copies_(function.variables.size()) {}

  LooseMeeting find() {
    for (const Instruction& instruction : function_.instructions) collect(instruction);
    if ((meeting_.sums & meeting_.products) == 0) return meeting_;
    spread();
    for (const Instruction& instruction : function_.instructions) {
      if (!meets(instruction)) continue;
      meeting_.line = std::max(instruction.line, 1u);
      break;
    }
    return meeting_;
  }

 private:
  bool is_local(const Operand& operand) const {
    return operand.reference == ptx::Reference::kLocal && operand.index < reaching_.size();
  }

  void reach(std::uint32_t index, FloatTypes types) {
    if ((reaching_[index] | types) == reaching_[index]) return;
    reaching_[index] |= types;
    reached_.push_back(index);
  }

  void collect(const Instruction& instruction) {
    const FloatTypes sum = bit_of(loose_sum(instruction));
    if (sum != 0 && meeting_.first_sum == 0) meeting_.first_sum = std::max(instruction.line, 1u);
    meeting_.sums |= sum;
    const auto product = static_cast<FloatTypes>(bit_of(loose_product(instruction)) |
                                                 bit_of(hidden_product(instruction)));
    meeting_.products |= product;
    constexpr std::array<std::string_view, 4> kCopies = {"mov", "neg", "abs", "selp"};
    const bool copies = std::ranges::find(kCopies, instruction.opcode) != kCopies.end();
    if (product == 0 && !copies) return;
    for_each_result(instruction, [&](const Operand& result) {
      if (!is_local(result)) return;
      reach(result.index, product);
      if (!copies) return;
      for_each_operand(instruction.operands, [&](const Operand& operand) {
        if (is_local(operand)) copies_[operand.index].push_back(result.index);
      });
    });
  }

  void spread() {
    while (!reached_.empty()) {
      const std::uint32_t from = reached_.back();
      reached_.pop_back();
      for (const std::uint32_t to : copies_[from]) reach(to, reaching_[from]);
    }
  }

  bool meets(const Instruction& instruction) const {
    const FloatTypes sum = bit_of(loose_sum(instruction));
    if (sum == 0) return false;
    bool found = false;
    bool is_result = true;
    for (const Operand& operand : instruction.operands) {
      if (!is_result && is_local(operand)) found |= (reaching_[operand.index] & sum) != 0;
      is_result = false;
    }
    return found;
  }

  const ptx::Function& function_;
  std::vector<FloatTypes> reaching_;                // by index into Function::variables
  std::vector<std::vector<std::uint32_t>> copies_;  // the same
  std::vector<std::uint32_t> reached_;              // whose copies are to be looked at
  LooseMeeting meeting_;
};

}  // namespace

std::string_view loose_sum(const Instruction& instruction) {
  if (instruction.opcode != "add" && instruction.opcode != "sub") return {};
  return names_rounding(instruction) ? std::string_view() : float_type(instruction);
}

std::string_view loose_product(const Instruction& instruction) {
  if (instruction.opcode != "mul" || names_rounding(instruction) || instruction.has("sat")) {
    return {};
  }
  if (std::ranges::any_of(instruction.operands, is_unit)) return {};
  return float_type(instruction);
}

std::string_view hidden_product(const Instruction& instruction) {
  const bool is_division =
      instruction.opcode == "div" && (instruction.has("full") || instruction.has("approx"));
  // Without .ftz its result is scaled.
  const bool is_reciprocal =
      instruction.opcode == "rcp" && instruction.has("approx") && !instruction.has("ftz");
  return is_division || is_reciprocal ? float_type(instruction) : std::string_view();
}

Contraction find_contraction(const ptx::Function& function, const ControlFlow& flow) {
  return ContractionFinder(function, flow).find();
}

LooseMeeting find_meeting(const ptx::Function& function) {
  return MeetingFinder(function).find();
}

}  // namespace slate::injector
