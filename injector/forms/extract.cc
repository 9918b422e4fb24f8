#include "injector/forms/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "injector/analysis/facts.h"
#include "injector/ptx/printer.h"

namespace slate::injector {
namespace {

/// What a kernel needs of its module.
class Needs {
 public:
  explicit Needs(const ptx::Module& module)
      : module_(module), functions_(module.functions.size()), variables_(module.variables.size()) {}

  void add(const ptx::Function& first) {
    add_function(static_cast<std::size_t>(&first - module_.functions.data()));
    while (!waiting_.empty()) {
      const ptx::Function& function = module_.functions[waiting_.back()];
      waiting_.pop_back();
      for (const ptx::Instruction& instruction : function.instructions) visit(instruction);
    }
  }

  /// Also of a declaration whose definition stands elsewhere.
  bool function(std::string_view name) const { return names_.contains(name); }
  bool variable(std::size_t index) const { return variables_[index]; }
  /// Why the kernel cannot leave its module; empty: it can.
  const std::string& obstacle() const { return obstacle_; }

 private:
  void add_function(std::size_t index) {
    if (functions_[index]) return;
    functions_[index] = true;
    names_.insert(module_.functions[index].name);
    waiting_.push_back(index);
  }

  void object(const ptx::Instruction& instruction, std::string_view why) {
    if (obstacle_.empty()) obstacle_ = fmt::format("line {}: {}", instruction.line, why);
  }

  void visit(const ptx::Instruction& instruction) {
    const bool calls = instruction.opcode == "call";
    if (instruction.opcode == "cvta" && instruction.has("const") && !instruction.has("to"))
      object(instruction, "takes the generic address of a constant");
    bool calls_by_name = false;
    for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
      if (operand.kind != ptx::Operand::Kind::kSymbol) return;
      if (operand.reference == ptx::Reference::kFunction) {
        calls_by_name = calls;
        if (!calls) object(instruction, "takes the address of a function");
        add_function(operand.index);
      } else if (operand.reference == ptx::Reference::kGlobal) {
        variables_[operand.index] = true;
      }
    });
    if (calls && !calls_by_name) object(instruction, "calls a function by its address");
  }

  const ptx::Module& module_;
  std::vector<bool> functions_, variables_;  // by index in the module
  std::set<std::string_view> names_;
  std::vector<std::size_t> waiting_;
  std::string obstacle_;
};

/// As many lines as the text had, so that what follows keeps its line number.
std::string lines_of(std::string_view text) {
  return std::string(static_cast<std::size_t>(std::ranges::count(text, '\n')), '\n');
}

class Extractor {
 public:
  Extractor(const ptx::Module& module, const Needs& needs) : module_(module), needs_(needs) {}

  Result<ExtractedKernel> run() {
    for (const ptx::Function& function : module_.functions) {
      if (!function.is_prototype && !needs_.function(function.name)) drop(function.span);
    }
    for (std::size_t i = 0; i < module_.variables.size();) {
      // One statement may declare several variables.
      std::size_t end = i + 1;
      while (end < module_.variables.size() &&
             module_.variables[end].span.begin == module_.variables[i].span.begin) {
        ++end;
      }
      if (const auto done = visit_statement(i, end); !done) return std::unexpected(done.error());
      i = end;
    }
    if (result_.constants.size() > kMostConstantCopies) {
      return fail(ErrorCode::kNotSupported,
                  fmt::format("it reads {} constants", result_.constants.size()));
    }
    auto text = ptx::apply_edits(module_, std::move(edits_));
    if (!text) return std::unexpected(text.error());
    result_.ptx = std::move(*text);
    return std::move(result_);
  }

 private:
  void drop(ptx::Span span, std::string instead = {}) {
    const std::string_view text(module_.text);
    edits_.push_back(ptx::replace(
        span, std::move(instead) + lines_of(text.substr(span.begin, span.end - span.begin))));
  }

  Result<void> visit_statement(std::size_t first, std::size_t end) {
    bool needed = false, constant = false;
    for (std::size_t i = first; i < end; ++i) {
      const ptx::Variable& variable = module_.variables[i];
      needed = needed || needs_.variable(i);
      constant = constant || (needs_.variable(i) && variable.space == ptx::Space::kConst);
      if (needs_.variable(i)) {
        if (const auto fits = check(variable); !fits) return fits;
      }
    }
    const ptx::Variable& variable = module_.variables[first];
    if (!needed) {
      drop(variable.span);
    } else if (constant) {
      if (end - first > 1) {
        return fail(ErrorCode::kNotSupported,
                    fmt::format("{} is declared together with other constants", variable.name));
      }
      // Without its initial contents, which may name what is not here; visible, as it must be
      // found.
      drop(variable.span, fmt::format(".visible .const .align {} .b8 {}[{}];",
                                      std::max(variable.align, 1U), variable.name, variable.bytes));
      result_.constants.push_back({std::string(variable.name), variable.bytes});
    }
    return {};
  }

  static Result<void> check(const ptx::Variable& variable) {
    const bool is_shared = variable.space == ptx::Space::kShared;
    const bool is_data =
        (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) &&
        variable.bytes > 0 && !variable.is_extern && !variable.is_managed;
    if (is_data || is_shared) return {};
    return fail(ErrorCode::kNotSupported,
                fmt::format("it uses {}, which is no plain variable of the module", variable.name));
  }

  const ptx::Module& module_;
  const Needs& needs_;
  std::vector<ptx::Edit> edits_;
  ExtractedKernel result_;
};

}  // namespace

Result<ExtractedKernel> extract_kernel(const ptx::Module& module, std::string_view entry) {
  const ptx::Function* const kernel = module.find_entry(entry);
  if (kernel == nullptr)
    return fail(ErrorCode::kSymbolNotFound, fmt::format("the module has no kernel {}", entry));
  if (!module.aliases.empty())
    return fail(ErrorCode::kNotSupported, "the module gives functions second names");
  Needs needs(module);
  needs.add(*kernel);
  if (!needs.obstacle().empty()) return fail(ErrorCode::kNotSupported, needs.obstacle());
  return Extractor(module, needs).run();
}

}  // namespace slate::injector
