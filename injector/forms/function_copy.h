// FunctionCopy: a copy of one function of a module under another name, with changes. Unchanged
// parts are byte for byte as in the original, except for labels that only debug information names.
// Thread: one.
#pragma once

#include <string>
#include <vector>

#include "injector/ptx/module.h"
#include "injector/ptx/printer.h"

namespace slate::injector {

class FunctionCopy {
 public:
  /// Requires: `module` outlives it.
  FunctionCopy(const ptx::Module& module, const ptx::Function& function, std::string_view name);

  void replace(ptx::Span span, std::string text);
  void insert(std::uint32_t offset, std::string text);
  /// Removes a variable's declaration, with all variables declared in it, and returns its text;
  /// empty if it is gone already. Requires: variables come in text order.
  std::string_view take(const ptx::Variable& variable);
  /// Inserts behind the opening brace.
  void prepend(std::string text) { insert(function_.body.begin + 1, std::move(text)); }
  /// Inserts before the closing brace.
  void append(std::string text) { insert(function_.body.end - 1, std::move(text)); }
  /// Adds a last parameter.
  void add_parameter(std::string_view declaration);
  /// Adds a performance directive, or sets its value.
  void set_directive(std::string_view name, std::uint32_t value);

  /// The text before the body, as a declaration. Errors: kInternal if edits contradict one another.
  Result<std::string> declaration() const;
  /// The whole copy. Errors: as declaration().
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
