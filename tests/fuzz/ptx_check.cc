#include "tests/fuzz/ptx_check.h"

#include <cstddef>

#include "base/check.h"
#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

class Checker {
 public:
  explicit Checker(const Module& module) : module_(module) {}

  void check() const {
    for (const Variable& variable : module_.variables) check_variable(variable);
    for (const Function& function : module_.functions) check_function(function);
  }

 private:
  void check_span(Span span) const {
    SLATE_CHECK(span.begin <= span.end && span.end <= module_.text.size());
  }

  void check_text(std::string_view text) const {
    SLATE_CHECK(text.empty() ||
                (text.data() >= module_.text.data() &&
                 text.data() + text.size() <= module_.text.data() + module_.text.size()));
  }

  void check_variable(const Variable& variable) const {
    check_span(variable.span);
    check_text(variable.name);
    SLATE_CHECK(variable.initial.size() <= variable.bytes);
    for (const Variable::Fixup& fixup : variable.fixups) {
      check_text(fixup.symbol);
      SLATE_CHECK(fixup.offset + fixup.bytes <= variable.initial.size());
    }
  }

  void check_function(const Function& function) const {
    check_span(function.span);
    check_span(function.parameters_span);
    check_span(function.body);
    for (const Variable& variable : function.parameters) check_variable(variable);
    for (const Variable& variable : function.returns) check_variable(variable);
    for (const Variable& variable : function.variables) check_variable(variable);
    for (const Label& label : function.labels) {
      check_span(label.span);
      SLATE_CHECK(label.target <= function.instructions.size());
      SLATE_CHECK(!label.prototype || *label.prototype < module_.functions.size());
    }
    for (const Instruction& instruction : function.instructions) {
      check_span(instruction.span);
      check_span(instruction.opcode_span);
      for (const std::string_view modifier : instruction.modifiers) check_text(modifier);
      for (const Operand& operand : instruction.operands) check_operand(operand, function);
      if (instruction.guard) check_operand(*instruction.guard, function);
    }
  }

  void check_operand(const Operand& operand, const Function& function) const {
    check_span(operand.span);
    check_text(operand.text);
    SLATE_CHECK(operand.index < size_of(operand.reference, function));
    SLATE_CHECK(operand.kind != Operand::Kind::kPair || operand.parts.size() == 2);
    for (const Operand& part : operand.parts) check_operand(part, function);
  }

  std::size_t size_of(Reference reference, const Function& function) const {
    switch (reference) {
      case Reference::kLocal:
        return function.variables.size();
      case Reference::kParameter:
        return function.parameters.size();
      case Reference::kReturn:
        return function.returns.size();
      case Reference::kGlobal:
        return module_.variables.size();
      case Reference::kFunction:
        return module_.functions.size();
      case Reference::kLabel:
        return function.labels.size();
      case Reference::kNone:
        break;
    }
    return 1;
  }

  const Module& module_;
};

}  // namespace

bool fuzz_parse(const std::string& text) {
  const auto module = parse(text);
  if (!module) {
    SLATE_CHECK(module.error().code == ErrorCode::kInvalidPtx);
    SLATE_CHECK(module.error().message.starts_with("line "));
    return false;
  }
  SLATE_CHECK((*module)->text == text);
  Checker(**module).check();
  return true;
}

}  // namespace slate::ptx
