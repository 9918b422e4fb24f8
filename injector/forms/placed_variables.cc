#include "injector/forms/placed_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "injector/ptx/printer.h"

namespace slate::injector {
namespace {

/// By index in Module::variables: where it is to lie.
using Places = std::vector<std::optional<std::uint64_t>>;

Result<Places> find_places(const ptx::Module& module, std::span<const PlacedVariable> placed) {
  Places places(module.variables.size());
  for (const PlacedVariable& each : placed) {
    const ptx::Variable* const variable = module.find_variable(each.name);
    if (variable == nullptr || variable->space != ptx::Space::kGlobal || variable->is_extern) {
      return fail(ErrorCode::kSymbolNotFound,
                  fmt::format("the module has no variable {} to be placed", each.name));
    }
    if (each.address % std::max<std::uint32_t>(variable->align, 1) != 0) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("{:#x} is not aligned for {}", each.address, each.name));
    }
    places[static_cast<std::size_t>(variable - module.variables.data())] = each.address;
  }
  return places;
}

/// Whoever loads the module fills in what begins with addresses, of what it loads.
Result<void> check_contents(const ptx::Module& module, const Places& places) {
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& variable = module.variables[i];
    for (const auto& fixup : variable.fixups) {
      const ptx::Variable* const other = module.find_variable(fixup.symbol);
      const bool to_placed =
          other != nullptr && places[static_cast<std::size_t>(other - module.variables.data())];
      if (places[i].has_value() == to_placed) continue;
      return fail(ErrorCode::kNotSupported,
                  fmt::format("{} begins with the address of {}, and only one of them lies outside "
                              "the module",
                              variable.name, fixup.symbol));
    }
  }
  return {};
}

/// The declarations go; one statement may declare several variables.
Result<void> drop_declarations(const ptx::Module& module, const Places& places,
                               std::vector<ptx::Edit>& edits) {
  std::map<std::uint32_t, std::pair<ptx::Span, bool>> statements;  // all of it is placed
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Span span = module.variables[i].span;
    auto& [its, all] = statements.try_emplace(span.begin, span, true).first->second;
    all = all && places[i].has_value();
  }
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    if (places[i] && !statements.at(module.variables[i].span.begin).second) {
      return fail(
          ErrorCode::kNotSupported,
          fmt::format("{} is declared together with other variables", module.variables[i].name));
    }
  }
  for (const auto& [begin, statement] : statements) {
    if (statement.second) edits.push_back(ptx::remove(statement.first));
  }
  return {};
}

/// Instructions that bring a variable's address, plus an offset, into a register.
using LoadAddress = std::function<std::string(std::uint32_t variable, std::int64_t offset,
                                              const std::string& register_name)>;

/// One instruction's uses of placed variables, each through a register of its own: few operands may
/// be numbers of 64 bits.
class Uses {
 public:
  Uses(const Places& places, LoadAddress load, std::vector<ptx::Edit>& edits)
      : places_(places), load_(std::move(load)), edits_(edits) {}

  void replace(const ptx::Instruction& instruction) {
    prologue_.clear();
    count_ = 0;
    for (const ptx::Operand& operand : instruction.operands) visit(operand);
    if (count_ == 0) return;
    edits_.push_back(ptx::insert_at(instruction.span.begin, "{ " + prologue_));
    edits_.push_back(ptx::insert_at(instruction.span.end, " }"));
  }

 private:
  void visit(const ptx::Operand& operand) {
    const bool is_name =
        operand.kind == ptx::Operand::Kind::kSymbol && operand.reference == ptx::Reference::kGlobal;
    if (is_name && places_[operand.index]) {
      const std::string name = fmt::format("%slate_placed{}", count_++);
      prologue_ +=
          fmt::format(".reg .b64 {}; {}", name, load_(operand.index, operand.integer, name));
      edits_.push_back(ptx::replace(operand.span, name));
    }
    for (const ptx::Operand& part : operand.parts) visit(part);
  }

  const Places& places_;
  const LoadAddress load_;
  std::vector<ptx::Edit>& edits_;
  std::string prologue_;
  int count_ = 0;
};

/// The module's text without these variables, whose uses go by `load`.
Result<std::string> without(const ptx::Module& module, const Places& places, LoadAddress load,
                            std::vector<ptx::Edit> edits) {
  if (const auto ok = drop_declarations(module, places, edits); !ok)
    return std::unexpected(ok.error());
  Uses uses(places, std::move(load), edits);
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& instruction : function.instructions) uses.replace(instruction);
  }
  return ptx::apply_edits(module, std::move(edits));
}

}  // namespace

Result<std::string> place_variables(const ptx::Module& module,
                                    std::span<const PlacedVariable> placed) {
  const auto places = find_places(module, placed);
  if (!places) return std::unexpected(places.error());
  if (const auto ok = check_contents(module, *places); !ok) return std::unexpected(ok.error());
  const auto load = [&](std::uint32_t variable, std::int64_t offset, const std::string& name) {
    const std::uint64_t address = *(*places)[variable] + static_cast<std::uint64_t>(offset);
    return fmt::format("mov.b64 {}, {:#x}; ", name, address);
  };
  return without(module, *places, load, {});
}

std::vector<std::byte> placed_contents(const ptx::Variable& variable,
                                       std::span<const PlacedVariable> placed) {
  const auto initial = std::as_bytes(std::span(variable.initial));
  std::vector<std::byte> contents(initial.begin(), initial.end());
  contents.resize(std::min<std::uint64_t>(contents.size(), variable.bytes));
  for (const auto& fixup : variable.fixups) {
    const auto target = std::ranges::find(placed, fixup.symbol, &PlacedVariable::name);
    if (target == placed.end() || fixup.shift >= 64 || fixup.bytes > sizeof(target->address) ||
        fixup.offset > variable.bytes || fixup.bytes > variable.bytes - fixup.offset)
      continue;  // no such module is loaded
    const std::uint64_t address =
        (target->address + static_cast<std::uint64_t>(fixup.addend)) >> fixup.shift;
    contents.resize(std::max<std::size_t>(contents.size(), fixup.offset + fixup.bytes));
    std::memcpy(contents.data() + fixup.offset, &address, fixup.bytes);
  }
  return contents;
}

namespace {

/// Constants that lie elsewhere have no place in this module's bank.
Result<void> read_constants_as_global(const ptx::Module& module, std::vector<ptx::Edit>& edits) {
  const std::string_view text(module.text);
  for (const ptx::Function& function : module.functions) {
    for (const ptx::Instruction& instruction : function.instructions) {
      if (!instruction.has("const")) continue;
      const bool loads = instruction.opcode == "ld" && instruction.modifiers.front() == "const";
      if (!loads && instruction.opcode != "cvta") {
        return fail(ErrorCode::kNotSupported, fmt::format("line {}: {} tells constants apart",
                                                          instruction.line, instruction.opcode));
      }
      const ptx::Span span = instruction.opcode_span;
      std::string opcode(text.substr(span.begin, span.end - span.begin));
      opcode.replace(opcode.find(".const"), std::string_view(".const").size(),
                     loads ? ".global.nc" : ".global");
      edits.push_back(ptx::replace(span, std::move(opcode)));
    }
  }
  return {};
}

}  // namespace

Result<std::string> tabulate_variables(const ptx::Module& module, std::vector<std::string>& names) {
  names.clear();
  std::vector<ptx::Edit> edits;
  if (const auto done = read_constants_as_global(module, edits); !done)
    return std::unexpected(done.error());
  Places rows(module.variables.size());
  std::uint32_t first = static_cast<std::uint32_t>(module.text.size());
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& variable = module.variables[i];
    first = std::min(first, variable.span.begin);
    if (variable.space != ptx::Space::kGlobal && variable.space != ptx::Space::kConst) continue;
    if (variable.is_extern || variable.is_managed || variable.bytes == 0) {
      return fail(ErrorCode::kNotSupported,
                  fmt::format("{} is no plain variable of the module", variable.name));
    }
    rows[i] = names.size();
    names.emplace_back(variable.name);
  }
  if (names.empty()) return ptx::apply_edits(module, std::move(edits));
  for (const ptx::Function& function : module.functions) {
    if (!function.is_prototype) first = std::min(first, function.span.begin);
  }
  const auto load = [&](std::uint32_t variable, std::int64_t offset, const std::string& name) {
    std::string text =
        fmt::format("ld.const.b64 {}, [{}+{}]; ", name, kVariableTable, 8 * *rows[variable]);
    if (offset != 0) text += fmt::format("add.s64 {}, {}, {}; ", name, name, offset);
    return text;
  };
  edits.push_back(ptx::insert_at(
      first, fmt::format(".visible .const .align 8 .b64 {}[{}];\n", kVariableTable, names.size())));
  return without(module, rows, load, std::move(edits));
}

}  // namespace slate::injector
