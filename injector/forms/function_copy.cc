#include "injector/forms/function_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "injector/analysis/facts.h"

namespace slate::injector {

FunctionCopy::FunctionCopy(const ptx::Module& module, const ptx::Function& function,
                           std::string_view name)
    : module_(module), function_(function) {
  const auto at = static_cast<std::uint32_t>(function.name.data() - module.text.data());
  replace({at, at + static_cast<std::uint32_t>(function.name.size())}, std::string(name));
  drop_unused_labels();
}

void FunctionCopy::replace(ptx::Span span, std::string text) {
  const std::uint32_t base = function_.span.begin;
  edits_.push_back({{span.begin - base, span.end - base}, std::move(text)});
}

std::string_view FunctionCopy::take(const ptx::Variable& variable) {
  const ptx::Span span = variable.span;
  if (span.begin < taken_to_) return {};
  taken_to_ = span.end;
  replace(span, "");
  return std::string_view(module_.text).substr(span.begin, span.end - span.begin);
}

void FunctionCopy::insert(std::uint32_t offset, std::string text) {
  replace({offset, offset}, std::move(text));
}

void FunctionCopy::add_parameter(std::string_view declaration) {
  const std::uint32_t end = function_.parameters_span.end;
  if (!function_.parameters.empty()) {
    // Right behind the last one: what follows may be a comment.
    insert(function_.parameters.back().span.end, fmt::format(",\n\t{}", declaration));
  } else if (end < module_.text.size() && module_.text[end] == ')') {
    insert(end, fmt::format("\n\t{}\n", declaration));
  } else {
    insert(end, fmt::format("(\n\t{}\n)", declaration));  // declared without parentheses
  }
}

void FunctionCopy::set_directive(std::string_view name, std::uint32_t value) {
  const std::string text = fmt::format(".{} {}", name, value);
  if (const auto* present = function_.directive(name)) {
    replace(present->span, text);
  } else {
    insert(function_.body.begin, text + "\n");
  }
}

/// Labels for debug information are named by the module's debug sections, where a second one of the
/// same name would be ambiguous.
void FunctionCopy::drop_unused_labels() {
  std::unordered_set<std::string_view> used;
  for (const ptx::Instruction& instruction : function_.instructions) {
    for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
      if (operand.kind == ptx::Operand::Kind::kSymbol) used.insert(operand.text);
    });
  }
  for (const ptx::Label& label : function_.labels) {
    for (const ptx::Operand& target : label.targets) used.insert(target.text);
  }
  for (const ptx::Label& label : function_.labels) {
    const bool is_table = !label.targets.empty() || label.prototype.has_value();
    if (!is_table && !used.contains(label.name)) replace(label.span, "");
  }
}

/// The function's text up to this offset.
std::string_view FunctionCopy::original(std::uint32_t end) const {
  return std::string_view(module_.text).substr(function_.span.begin, end - function_.span.begin);
}

Result<std::string> FunctionCopy::declaration() const {
  const std::string_view head = original(function_.body.begin);
  std::vector<ptx::Edit> edits = edits_;
  std::erase_if(edits, [&](const ptx::Edit& edit) { return edit.span.end > head.size(); });
  auto text = ptx::apply_edits(head, std::move(edits));
  if (text) *text += ";\n";
  return text;
}

Result<std::string> FunctionCopy::text() && {
  return ptx::apply_edits(original(function_.span.end), std::move(edits_));
}

}  // namespace slate::injector
