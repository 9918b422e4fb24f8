#include "dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace slate::ptx {
namespace {

constexpr std::string_view kReferences = "?vprgfl";
constexpr std::string_view kSpaces[] = {"none",  "reg",   "global", "shared", "const",
                                        "local", "param", "sreg",   "tex"};

std::string join(const std::vector<Operand>& operands, bool plain) {
  std::string out;
  for (const Operand& operand : operands) {
    if (!out.empty()) out.append(", ");
    out += dump(operand, plain);
  }
  return out;
}

std::string component(char value) {
  switch (value) {
    case 0:
      return "";
    case 'l':
      return ".h0";
    case 'h':
      return ".h1";
    case '0':
    case '1':
    case '2':
    case '3':
      return fmt::format(".b{}", value);
    default:
      return fmt::format(".{}", value);
  }
}

std::string symbol(const Operand& operand, bool plain) {
  std::string out(operand.text);
  out += component(operand.component);
  if (!plain) {
    const auto reference = static_cast<std::size_t>(operand.reference);
    out += fmt::format("#{}", kReferences[reference]);
    if (reference != 0) out += std::to_string(operand.index);
  }
  if (operand.integer != 0) out += fmt::format("+{}", operand.integer);
  return out;
}

std::string address(const Operand& operand, bool plain) {
  if (operand.parts.empty()) return fmt::format("[{}]", operand.integer);
  std::string out = join(operand.parts, plain);
  if (operand.integer != 0) out += fmt::format("+{}", operand.integer);
  return fmt::format("[{}]", out);
}

std::string number(const Operand& operand) {
  if (operand.float_bits == 32) return fmt::format("0f{:08X}", operand.integer);
  if (operand.float_bits == 64) {
    return fmt::format("0d{:016X}", static_cast<std::uint64_t>(operand.integer));
  }
  return fmt::format("{}", operand.floating);
}

}  // namespace

std::string dump(const Operand& operand, bool plain) {
  const std::string out = operand.negated ? (plain ? "!" : "not ") : "";
  switch (operand.kind) {
    case Operand::Kind::kSymbol:
      return fmt::format("{}{}", out, symbol(operand, plain));
    case Operand::Kind::kSpecial:
      return fmt::format("{}{}", out, operand.text);
    case Operand::Kind::kSink:
      return "_";
    case Operand::Kind::kInteger:
      return std::to_string(operand.integer);
    case Operand::Kind::kFloat:
      return number(operand);
    case Operand::Kind::kAddress:
      return address(operand, plain);
    case Operand::Kind::kVector:
      return fmt::format("{{{}}}", join(operand.parts, plain));
    case Operand::Kind::kList:
      return fmt::format("({})", join(operand.parts, plain));
    case Operand::Kind::kPair:
      return fmt::format("{}|{}", dump(operand.parts[0], plain), dump(operand.parts[1], plain));
  }
  return "?";
}

std::string dump(const Instruction& instruction, bool plain) {
  std::string out;
  if (instruction.guard) out += fmt::format("@{} ", dump(*instruction.guard, plain));
  out += instruction.opcode;
  for (const std::string_view modifier : instruction.modifiers) out += fmt::format(".{}", modifier);
  if (!instruction.operands.empty()) out += fmt::format(" {}", join(instruction.operands, plain));
  out += ";";
  return out;
}

std::string dump(const Variable& variable) {
  std::string out;
  if (variable.is_extern) out += "extern ";
  if (variable.is_visible) out += "visible ";
  if (variable.is_managed) out += "managed ";
  out += kSpaces[static_cast<std::size_t>(variable.space)];
  if (variable.vector > 1) out += fmt::format(" v{}", variable.vector);
  out += fmt::format(" {} {}", type_name(variable.type), variable.name);
  if (variable.is_array) out += fmt::format("[{}]", variable.elements);
  out += fmt::format(" align {} bytes {}", variable.align, variable.bytes);
  if (!variable.initial.empty()) out += fmt::format(" = {:02x}", fmt::join(variable.initial, ""));
  for (const Variable::Fixup& fixup : variable.fixups) {
    out += fmt::format(" {}@{}:{}{}{:+}", fixup.generic ? "generic" : "address", fixup.offset,
                       fixup.bytes, fixup.symbol, fixup.addend);
    if (fixup.shift != 0) out += fmt::format(">>{}", fixup.shift);
  }
  return out;
}

std::string dump(const Function& function) {
  std::string out;
  if (function.is_extern) out += "extern ";
  if (function.is_visible) out += "visible ";
  out += function.is_entry ? "entry " : function.is_prototype ? "prototype " : "func ";
  out += function.name;
  for (const Function::Directive& directive : function.directives) {
    out += fmt::format(" .{}({})", directive.name, fmt::join(directive.values, ","));
  }
  out += function.has_body ? " {\n" : "\n";
  for (const Variable& variable : function.returns)
    out += fmt::format("  return {}\n", dump(variable));
  for (const Variable& variable : function.parameters)
    out += fmt::format("  given {}\n", dump(variable));
  for (const Variable& variable : function.variables) out += fmt::format("  {}\n", dump(variable));
  for (const Label& label : function.labels) {
    out += fmt::format("  {} -> {}", label.name, label.target);
    for (const Operand& target : label.targets) out += fmt::format(" {}", target.text);
    if (label.prototype) out += fmt::format(" prototype {}", *label.prototype);
    out += "\n";
  }
  for (const Instruction& instruction : function.instructions) {
    out += fmt::format("  {}\n", dump(instruction));
  }
  out += function.has_body ? "}\n" : "";
  return out;
}

std::string dump(const Module& module) {
  std::string out;
  for (const Variable& variable : module.variables) out += dump(variable) + "\n";
  for (const Function& function : module.functions) out += dump(function);
  for (const Alias& alias : module.aliases) {
    out += fmt::format("alias {} = {}\n", alias.name, alias.target);
  }
  return out;
}

std::string dump_of(const std::string& text) {
  const auto module = parse(text);
  return module ? dump(**module) : module.error().message;
}

std::string dump_of_body(const std::string& body) {
  const auto module = parse(fmt::format("{}.entry f(.param .u64 p) {{{}}}", kHeader, body));
  if (!module) return module.error().message;
  const Function& function = *(*module)->find_entry("f");
  std::string out;
  for (const Instruction& instruction : function.instructions) {
    if (!out.empty()) out.append(" ");
    out += dump(instruction);
  }
  return out;
}

std::string read_data(const std::string& name) {
  std::ifstream in(std::string(SLATE_PTX_DATA "/") + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> data_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SLATE_PTX_DATA)) {
    if (entry.path().extension() == ".ptx") names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace slate::ptx
