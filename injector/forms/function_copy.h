// FunctionCopy: a copy of one function of a module under another name, with changes. What is not
// changed is byte for byte as in the original, apart from labels that only debug information names.
#pragma once

#include <string>
#include <vector>

#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

class FunctionCopy {
 public:
  /// `module` outlives it.
  FunctionCopy(const ptx::Module& module, const ptx::Function& function, std::string_view name);

  void replace(ptx::Span span, std::string text);
  void insert(std::uint32_t offset, std::string text);
  /// Removes a variable's declaration, with all that are declared by it, and returns its text;
  /// empty if it is gone already. Requires: variables come in text order.
  std::string_view take(const ptx::Variable& variable);
  /// Behind the opening brace.
  void prepend(std::string text) { insert(function_.body.begin + 1, std::move(text)); }
  /// Before the closing brace.
  void append(std::string text) { insert(function_.body.end - 1, std::move(text)); }
  /// A last parameter.
  void add_parameter(std::string_view declaration);
  /// Another performance directive, or a new value for one.
  void set_directive(std::string_view name, std::uint32_t value);

  /// All before the body, as a declaration.
  Result<std::string> declaration() const;
  Result<std::string> text() &&;

 private:
  void drop_unused_labels();
  std::string_view original(std::uint32_t end) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::vector<ptx::Edit> edits_;  // offsets from the start of the function
  std::uint32_t taken_to_ = 0;
};

}  // namespace slate::injector
