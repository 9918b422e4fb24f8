// The decoder understands what real programs use: every combination of opcode and modifiers of
// tests/data/sim/corpus_operations.csv, in the text of corpus_operations.ptx. Only decodes; what
// the instructions do is tested elsewhere.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "device/sim/program.h"
#include "injector/ptx/module.h"

namespace slate::sim::test {
namespace {

constexpr double kKernels = 799;
constexpr double kLeastShare = 0.95;

std::string combination(const ptx::Instruction& instruction) {
  std::string name(instruction.opcode);
  for (const std::string_view modifier : instruction.modifiers) {
    if (ptx::parse_type(modifier) == ptx::Type::kNone) (name += '.') += modifier;
  }
  return name;
}

class CoverageTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(SLATE_SIM_DATA "/corpus_operations.ptx");
    std::stringstream text;
    text << file.rdbuf();
    auto parsed = ptx::parse(text.str());
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    module_ = std::move(*parsed);
    std::ifstream table(SLATE_SIM_DATA "/corpus_operations.csv");
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
      const std::size_t comma = line.find(',');
      ASSERT_NE(comma, std::string::npos) << line;
      corpus_[line.substr(0, comma)] = std::stoi(line.substr(comma + 1));
    }
    ASSERT_EQ(corpus_.size(), 256u);
  }

  /// Decodes every entry, and collects the combinations that some statement of it is unknown in.
  void decode_all() {
    SymbolTable symbols;
    device::Address next = 1u << 20;
    for (const ptx::Variable& variable : module_->variables) {
      symbols[std::string(variable.name)] = next;
      next += 4096;
    }
    for (const ptx::Function& function : module_->functions) {
      if (!function.is_entry) continue;
      SCOPED_TRACE(std::string(function.name));
      const auto program = Program::decode(module_, function, symbols);
      ASSERT_TRUE(program.has_value()) << program.error().message;
      for (const UnknownInstruction& unknown : (*program)->unknown_instructions()) {
        ADD_FAILURE() << "line " << unknown.line << ": " << unknown.text;
        unknown_lines_.insert(unknown.line);
      }
    }
  }

  std::shared_ptr<const ptx::Module> module_;
  std::map<std::string, int> corpus_;  // combination to kernels that use it
  std::set<std::uint32_t> unknown_lines_;
};

TEST_F(CoverageTest, EveryStatementOfTheCorpusIsUnderstood) {
  decode_all();
  std::set<std::string> seen, unknown;
  for (const ptx::Function& function : module_->functions) {
    for (const ptx::Instruction& instruction : function.instructions) {
      const bool is_unknown = unknown_lines_.contains(instruction.line);
      (is_unknown ? unknown : seen).insert(combination(instruction));
    }
  }
  int kernels = 0, understood = 0;
  for (const auto& [name, users] : corpus_) {
    if (unknown.contains(name) || !seen.contains(name)) {
      ADD_FAILURE() << name << " is missing, used by " << users << " kernels";
      kernels += users;
    } else {
      ++understood;
    }
  }
  // A kernel that uses several missing combinations is counted several times: a lower bound.
  const double share = 1 - kernels / kKernels;
  RecordProperty("understood", understood);
  RecordProperty("least_share", std::to_string(share));
  EXPECT_GE(share, kLeastShare) << understood << " of " << corpus_.size();
}

}  // namespace
}  // namespace slate::sim::test
