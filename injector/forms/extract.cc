#include "injector/forms/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

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

/// Why the kernel cannot do with this variable outside of its module; empty: it can.
std::string obstacle_of(const ptx::Variable& variable) {
  const bool is_shared = variable.space == ptx::Space::kShared;
  const bool is_data =
      (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) &&
      variable.bytes > 0 && !variable.is_extern && !variable.is_managed;
  if (is_data || is_shared) return {};
  return fmt::format("it uses {}, which is no plain variable of the module", variable.name);
}

/// Statements that declare nothing that is needed go; one may declare several variables.
Result<void> drop_variables(const ptx::Module& module, const Needs& needs,
                            std::map<std::uint32_t, ptx::Span>& dropped) {
  for (const ptx::Variable& variable : module.variables)
    dropped.try_emplace(variable.span.begin, variable.span);
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    if (!needs.variable(i)) continue;
    const ptx::Variable& variable = module.variables[i];
    if (std::string obstacle = obstacle_of(variable); !obstacle.empty())
      return fail(ErrorCode::kNotSupported, std::move(obstacle));
    dropped.erase(variable.span.begin);
  }
  return {};
}

}  // namespace

Result<std::string> extract_kernel(const ptx::Module& module, std::string_view entry) {
  const ptx::Function* const kernel = module.find_entry(entry);
  if (kernel == nullptr)
    return fail(ErrorCode::kSymbolNotFound, fmt::format("the module has no kernel {}", entry));
  if (!module.aliases.empty())
    return fail(ErrorCode::kNotSupported, "the module gives functions second names");
  Needs needs(module);
  needs.add(*kernel);
  if (!needs.obstacle().empty()) return fail(ErrorCode::kNotSupported, needs.obstacle());
  std::map<std::uint32_t, ptx::Span> dropped;  // by where they begin
  if (const auto done = drop_variables(module, needs, dropped); !done)
    return std::unexpected(done.error());
  for (const ptx::Function& function : module.functions) {
    if (!function.is_prototype && !needs.function(function.name))
      dropped.emplace(function.span.begin, function.span);
  }
  std::vector<ptx::Edit> edits;
  const std::string_view text(module.text);
  for (const auto& [begin, span] : dropped)
    edits.push_back(ptx::replace(span, lines_of(text.substr(begin, span.end - begin))));
  return ptx::apply_edits(module, std::move(edits));
}

}  // namespace slate::injector
