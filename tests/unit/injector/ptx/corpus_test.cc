// Real compiler output: every module parses, and every instruction, written again from the tree, is
// the text that it came from.
#include <gtest/gtest.h>

#include "dump.h"
#include "injector/ptx/printer.h"

namespace slate::ptx {
namespace {

class CorpusTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto parsed = parse(read_data(GetParam()));
    ASSERT_TRUE(parsed) << parsed.error().message;
    module_ = std::move(*parsed);
    ASSERT_FALSE(module_->functions.empty());
  }
  std::unique_ptr<const Module> module_;
};

/// Without blanks, and with the addends 0 and +- of compilers in one form.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c > ' ') out += c;
  }
  for (std::size_t at = 0; (at = out.find("+0]", at)) != std::string::npos;) out.erase(at, 2);
  return out;
}

/// Integers in hexadecimal and floating-point numbers in decimal have another form in the dump.
bool has_other_form(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return has("0x") || has("0X") || has(" 1.0");
}

void expect_resolved(const Operand& operand, const Instruction& instruction) {
  if (operand.kind == Operand::Kind::kSymbol) {
    EXPECT_NE(operand.reference, Reference::kNone) << operand.text << " line " << instruction.line;
  }
  for (const Operand& part : operand.parts) expect_resolved(part, instruction);
}

TEST_P(CorpusTest, InstructionsReadBackAsWritten) {
  std::size_t compared = 0;
  for (const Function& function : module_->functions) {
    for (const Instruction& instruction : function.instructions) {
      const std::string_view text =
          std::string_view(module_->text)
              .substr(instruction.span.begin, instruction.span.end - instruction.span.begin);
      if (has_other_form(text)) continue;
      EXPECT_EQ(squeezed(dump(instruction, true)), squeezed(text)) << "line " << instruction.line;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10u);
}

TEST_P(CorpusTest, EveryNameIsResolved) {
  for (const Function& function : module_->functions) {
    for (const Instruction& instruction : function.instructions) {
      for (const Operand& operand : instruction.operands) expect_resolved(operand, instruction);
      if (instruction.guard) expect_resolved(*instruction.guard, instruction);
    }
  }
}

TEST_P(CorpusTest, NoEditIsIdentity) {
  EXPECT_EQ(apply_edits(*module_, {}).value(), read_data(GetParam()));
}

TEST_P(CorpusTest, InstructionsReplacedByThemselvesAreIdentity) {
  std::vector<Edit> edits;
  for (const Function& function : module_->functions) {
    for (const Instruction& instruction : function.instructions) {
      const Span span = instruction.span;
      edits.push_back(replace(span, module_->text.substr(span.begin, span.end - span.begin)));
    }
  }
  EXPECT_EQ(apply_edits(*module_, std::move(edits)).value(), module_->text);
}

TEST_P(CorpusTest, LinesAreTheLinesOfTheText) {
  std::uint32_t line = 1;
  std::uint32_t at = 0;
  for (const Function& function : module_->functions) {
    for (const Instruction& instruction : function.instructions) {
      for (; at < instruction.span.begin; ++at) line += module_->text[at] == '\n';
      ASSERT_EQ(instruction.line, line);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, CorpusTest, testing::ValuesIn(data_files()), [](const auto& file) {
  return file.param.substr(0, file.param.find('.'));
});

TEST(CorpusFilesTest, AreFound) {
  EXPECT_GE(data_files().size(), 6u);
}

}  // namespace
}  // namespace slate::ptx
