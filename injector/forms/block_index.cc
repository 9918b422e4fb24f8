#include "injector/forms/block_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "injector/forms/launch_parameters.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

constexpr std::string_view kWords = "__slate_index";  // ctaid x, y, z, nctaid x, y, z

static_assert(sizeof(LaunchParameters) <= kAddedParameterBytes);

constexpr std::string_view kIndexRegisters = "\t.reg .b32 ~cx, ~cy, ~cz, ~nx, ~ny, ~nz;\n";
constexpr std::string_view kNumberRegisters = "\t.reg .b32 ~block, ~u, ~q;\n\t.reg .b64 ~w;\n";

constexpr std::string_view kDivideX = R"(	ld.param.u32 ~u, [<magic_x>];
	mul.wide.u32 ~w, ~block, ~u;
	ld.param.u32 ~u, [<shift_x>];
	shr.u64 ~w, ~w, ~u;
	cvt.u32.u64 ~q, ~w;
)";
constexpr std::string_view kDivideY = R"(	ld.param.u32 ~u, [<magic_y>];
	mul.wide.u32 ~w, ~q, ~u;
	ld.param.u32 ~u, [<shift_y>];
	shr.u64 ~w, ~w, ~u;
)";

// From the quotient to the index, by axis.
constexpr std::array<std::string_view, 3> kIndex = {R"(	ld.param.u32 ~u, [<extent_x>];
	mul.lo.u32 ~q, ~q, ~u;
	sub.u32 ~cx, ~block, ~q;
)",
                                                    R"(	cvt.u32.u64 ~cy, ~w;
	ld.param.u32 ~u, [<extent_y>];
	mul.lo.u32 ~cy, ~cy, ~u;
	sub.u32 ~cy, ~q, ~cy;
)",
                                                    R"(	cvt.u32.u64 ~cz, ~w;
)"};
constexpr std::array<std::string_view, 3> kGridSize = {"	ld.param.u32 ~nx, [<extent_x>];\n",
                                                       "	ld.param.u32 ~ny, [<extent_y>];\n",
                                                       "	ld.param.u32 ~nz, [<extent_z>];\n"};

std::size_t axis_of(const ptx::Operand& operand) {
  return static_cast<std::size_t>(operand.text.back() - 'x');
}

bool is_grid_size(const ptx::Operand& operand) {
  return operand.text.starts_with("%nctaid");
}

std::string register_for(const ptx::Operand& operand) {
  return expand(is_grid_size(operand) ? "~n" : "~c") + operand.text.back();
}

std::string compute_index(std::size_t axis) {
  std::string code(kDivideX);
  if (axis > 0) code += kDivideY;
  return expand(code.append(kIndex[axis]));
}

std::string compute(const ptx::Operand& operand) {
  const std::size_t axis = axis_of(operand);
  return is_grid_size(operand) ? expand(kGridSize[axis]) : compute_index(axis);
}

std::string read_word(const ptx::Operand& operand) {
  const std::size_t word = axis_of(operand) + (is_grid_size(operand) ? 3 : 0);
  return fmt::format("\tld.shared.u32 {}, [{}+{}];\n", register_for(operand), kWords, 4 * word);
}

/// Puts what `source` writes for a block-index operand before each instruction that reads one.
template <typename Source>
void replace_reads(const ptx::Function& function, FunctionCopy& copy, Source source) {
  for (const ptx::Instruction& instruction : function.instructions) {
    for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
      if (!is_block_index(operand)) return;
      copy.insert(instruction.span.begin, "\n" + source(operand) + "\t");
      copy.replace(operand.span, register_for(operand));
    });
  }
}

/// How many axes of the index are kept: up to the last that is read.
std::size_t kept_axes(const ptx::Function& function) {
  std::size_t axes = 0;
  for (const ptx::Instruction& instruction : function.instructions) {
    for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
      if (is_block_index(operand) && !is_grid_size(operand)) {
        axes = std::max(axes, axis_of(operand) + 1);
      }
    });
  }
  return axes;
}

/// Adds one along an axis, {0}, and goes on to the next axis only with a carry.
constexpr std::string_view kStep = R"(	add.u32 ~c{0}, ~c{0}, 1;
	ld.param.u32 ~u, [<extent_{0}>];
	setp.lt.u32 ~p, ~c{0}, ~u;
	@~p bra $stepped;
	mov.u32 ~c{0}, 0;
)";

// ~stop: where the run of blocks ends, each of which is the one before but for ~cx: with the task,
// at ~e, or with a row of the grid.
constexpr std::string_view kStop = R"($row:
	and.b32 ~stop, ~e, 0x7fffffff;
)";
constexpr std::string_view kStopInRow = R"(	ld.param.u32 ~u, [<extent_x>];
	sub.u32 ~u, ~u, ~cx;
	add.u32 ~u, ~u, ~block;
	min.u32 ~stop, ~stop, ~u;
)";
constexpr std::string_view kNextRow = R"(	ld.shared.u32 ~e, [~slot+4];
	and.b32 ~u, ~e, 0x7fffffff;
	setp.lt.u32 ~p, ~block, ~u;
	@!~p bra $done;
	mov.u32 ~cx, 0;
)";

/// The axes behind x.
std::string step_rows(std::size_t axes) {
  std::string code;
  if (axes > 1) code += fmt::format(kStep, 'y');
  if (axes > 2) code += "\tadd.u32 ~cz, ~cz, 1;\n";
  return code;
}

}  // namespace

std::string block_index_registers() {
  return expand(std::string(kIndexRegisters).append(kNumberRegisters));
}

std::string parameter_declaration() {
  return fmt::format(".param .align 8 .b8 {}[{}]", kParameterName, sizeof(LaunchParameters));
}

void replace_block_index(const ptx::Function& function, FunctionCopy& copy,
                         std::string_view before) {
  replace_reads(function, copy, [&](const ptx::Operand& operand) {
    return is_grid_size(operand) ? compute(operand) : expand(before) + compute(operand);
  });
}

std::string begin_block_index(const ptx::Function& function) {
  std::string code;
  for (std::size_t axis = 0; axis < kept_axes(function); ++axis) code += compute_index(axis);
  return code;
}

std::string step_block_index(const ptx::Function& function) {
  const std::size_t axes = kept_axes(function);
  if (axes == 0) return {};
  return expand(fmt::format(kStep, 'x') + step_rows(axes) + "$stepped:\n");
}

std::string begin_run(const ptx::Function& function) {
  std::string code(kStop);
  if (kept_axes(function) > 0) code += kStopInRow;
  return begin_block_index(function) + expand(code + "$indexed:\n");
}

std::string step_run(const ptx::Function& function, std::string_view barrier) {
  const std::size_t axes = kept_axes(function);
  std::string code = "\tadd.u32 ~block, ~block, 1;\n";
  if (axes > 0) code += "\tadd.u32 ~cx, ~cx, 1;\n";
  code += "\tsetp.lt.u32 ~p, ~block, ~stop;\n";
  code.append(barrier).append("\t@~p bra $indexed;\n");
  if (axes == 0) return expand(code);
  code.append(kNextRow).append(step_rows(axes));
  return expand(code + "$stepped:\n\tbra $row;\n$done:\n");
}

void replace_kept_index(const ptx::Function& function, FunctionCopy& copy) {
  for (const ptx::Instruction& instruction : function.instructions) {
    for_each_operand(instruction.operands, [&](const ptx::Operand& operand) {
      if (!is_block_index(operand)) return;
      if (is_grid_size(operand))
        copy.insert(instruction.span.begin, "\n" + compute(operand) + "\t");
      copy.replace(operand.span, register_for(operand));
    });
  }
}

std::vector<bool> functions_to_copy(const ptx::Module& module, const ModuleAnalysis& analysis) {
  std::vector<bool> wanted(module.functions.size(), false);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ptx::Function& function = module.functions[i];
    wanted[i] = !function.is_entry && function.has_body &&
                analysis.functions[i].with_callees.has(Trait::kBlockIndex);
  }
  return wanted;
}

void redirect_calls(const ptx::Module& module, const ptx::Function& function,
                    const std::vector<bool>& wanted, FunctionCopy& copy, std::string_view suffix) {
  for (const ptx::Instruction& instruction : function.instructions) {
    if (instruction.opcode != "call") continue;
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.reference != ptx::Reference::kFunction || !wanted[operand.index]) continue;
      copy.replace(operand.span, fmt::format("{}{}", module.functions[operand.index].name, suffix));
    }
  }
}

Result<std::string> copy_functions(const ptx::Module& module, const std::vector<bool>& wanted) {
  std::string declarations;
  std::string bodies;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const ptx::Function& function = module.functions[i];
    FunctionCopy copy(module, function, fmt::format("{}{}", function.name, kFunctionSuffix));
    redirect_calls(module, function, wanted, copy);
    replace_reads(function, copy, read_word);
    copy.prepend("\n" + expand(kIndexRegisters));
    // Ahead of all bodies, as functions may call one another in circles.
    const auto declaration = copy.declaration();
    if (!declaration) return declaration;
    declarations += *declaration;
    auto text = std::move(copy).text();
    if (!text) return text;
    bodies += "\n" + *text + "\n";
  }
  if (bodies.empty()) return std::string();
  return fmt::format("\n.shared .align 4 .b8 {}[24];\n{}{}", kWords, declarations, bodies);
}

std::string publish_block_index() {
  constexpr std::string_view kAxes = "xyz";
  std::string code;
  for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
    code += compute_index(axis) + expand(kGridSize[axis]);
    code +=
        expand(fmt::format("\tst.shared.u32 [{0}+{1}], ~c{3};\n\tst.shared.u32 [{0}+{2}], ~n{3};\n",
                           kWords, 4 * axis, 12 + 4 * axis, kAxes[axis]));
  }
  return code;
}

}  // namespace slate::injector
