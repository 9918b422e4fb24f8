// Program::decode: finds what an entry can reach, places its shared variables, and has every
// function decoded.
#include "device/sim/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

using ptx::Function;
using ptx::Operand;

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kRegisterFile = 65536;

template <typename Visit>
void each_operand(const std::vector<Operand>& operands, const Visit& visit) {
  for (const Operand& operand : operands) {
    visit(operand);
    each_operand(operand.parts, visit);
  }
}

const Function* definition_of(const ptx::Module& module, std::string_view name) {
  for (const Function& function : module.functions) {
    if (function.name == name && function.has_body && !function.is_entry) return &function;
  }
  return nullptr;
}

/// True for `call %rd, ...`: it may reach any function.
bool calls_indirectly(const ptx::Instruction& instruction) {
  if (instruction.opcode != "call") return false;
  const auto target =
      std::ranges::find(instruction.operands, Operand::Kind::kSymbol, &Operand::kind);
  return target != instruction.operands.end() && target->reference != ptx::Reference::kFunction;
}

std::vector<const Function*> reachable_from(const ptx::Module& module, const Function& entry) {
  std::unordered_map<std::string_view, const Function*> definitions;
  for (const Function& function : module.functions) {
    if (function.has_body && !function.is_entry) definitions.try_emplace(function.name, &function);
  }
  std::vector<const Function*> found = {&entry};
  std::unordered_set<const Function*> seen = {&entry};
  bool all = false;
  const auto add = [&](const Function* function) {
    if (seen.insert(function).second) found.push_back(function);
  };
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ptx::Instruction& instruction : found[i]->instructions) {
      if (instruction.opcode != "call" && instruction.opcode != "mov") continue;
      each_operand(instruction.operands, [&](const Operand& operand) {
        if (operand.reference != ptx::Reference::kFunction) return;
        const auto definition = definitions.find(module.functions[operand.index].name);
        if (definition != definitions.end()) add(definition->second);
      });
      if (all || !calls_indirectly(instruction)) continue;
      all = true;
      for (const Function& function : module.functions) {
        if (function.has_body && !function.is_entry) add(definitions.at(function.name));
      }
    }
  }
  return found;
}

std::uint32_t max_threads(const Function& entry) {
  for (const std::string_view name : {"reqntid", "maxntid"}) {
    const Function::Directive* directive = entry.directive(name);
    if (!directive) continue;
    std::uint64_t threads = 1;
    for (const std::uint64_t value : directive->values) {
      threads *= std::clamp<std::uint64_t>(value, 1, kMaxThreads);
      threads = std::min<std::uint64_t>(threads, kMaxThreads);
    }
    return static_cast<std::uint32_t>(threads);
  }
  return kMaxThreads;
}

Result<void> place_parameters(const Function& entry, device::FunctionInfo& info) {
  std::uint64_t offset = 0;
  for (const ptx::Variable& parameter : entry.parameters) {
    const std::uint64_t align = std::clamp<std::uint64_t>(parameter.align, 1, 4096);
    offset = (offset + align - 1) / align * align;
    info.parameters.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.bytes)});
    offset += parameter.bytes;
    if (parameter.bytes > kMaxParameterBytes || offset > kMaxParameterBytes) {
      return fail(ErrorCode::kInvalidPtx,
                  fmt::format("entry {} has too many parameters", entry.name));
    }
  }
  return {};
}

/// Of more than one block.
bool is_clustered(const Function& entry) {
  const auto* const directive = entry.directive("reqnctapercluster");
  if (directive == nullptr) return entry.directive("explicitcluster") != nullptr;
  return std::ranges::any_of(directive->values, [](std::uint64_t size) { return size > 1; });
}

void fill_info(Code& code, const Function& entry, std::uint32_t peak_registers) {
  device::FunctionInfo& info = code.info_;
  info.name = std::string(entry.name);
  info.max_threads_per_block = max_threads(entry);
  info.static_shared_bytes = code.static_shared;
  info.max_dynamic_shared_bytes =
      code.static_shared < kDefaultSharedLimit ? kDefaultSharedLimit - code.static_shared : 0;
  for (const ptx::Variable& variable : code.module->variables) {
    if (variable.space == ptx::Space::kConst) {
      info.constant_bytes += static_cast<std::uint32_t>(variable.bytes);
    }
  }
  for (const FunctionCode& function : code.functions) info.local_bytes += function.local_bytes;
  // An estimate that never forbids a block size that the directives allow.
  const std::uint32_t limit = kRegisterFile / std::max(info.max_threads_per_block, 32u);
  info.registers = std::clamp(std::min(peak_registers + 8, limit / 8 * 8), 16u, 255u);
  constexpr std::uint64_t kLeastLimit = 24;  // ptxas raises lower ones
  if (const auto* const most = entry.directive("maxnreg"); most != nullptr && !most->values.empty())
    info.registers = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(info.registers, std::max(kLeastLimit, most->values[0])));
  info.ptx_version = code.module->sm;
  info.binary_version = code.module->sm;
  info.has_clusters = is_clustered(entry);
  info.needs_cluster = entry.directive("explicitcluster") != nullptr;
  if (const auto* const size = entry.directive("reqnctapercluster"); size != nullptr) {
    info.cluster = {1, 1, 1};
    for (std::size_t i = 0; i < std::min<std::size_t>(size->values.size(), 3); ++i)
      info.cluster[i] = static_cast<std::uint32_t>(size->values[i]);
  }
}

}  // namespace

void place_shared(DecodeContext& context, const std::vector<const Function*>& functions) {
  std::vector<const ptx::Variable*> dynamic;
  std::uint64_t end = 0;
  std::uint64_t dynamic_align = 16;
  const auto place = [&](const ptx::Variable& variable) {
    if (variable.space != ptx::Space::kShared || context.shared_offsets.contains(&variable)) return;
    const std::uint64_t align = std::clamp<std::uint64_t>(variable.align, 1, 4096);
    if (variable.bytes == 0) {
      dynamic_align = std::max(dynamic_align, align);
      dynamic.push_back(&variable);
      context.shared_offsets[&variable] = 0;
      return;
    }
    end = (end + align - 1) / align * align;
    context.shared_offsets[&variable] = static_cast<std::uint32_t>(end);
    end = std::min<std::uint64_t>(end + variable.bytes, kMaxStaticShared + 1);
  };
  for (const Function* function : functions) {
    for (const ptx::Variable& variable : function->variables) place(variable);
    for (const ptx::Instruction& instruction : function->instructions) {
      each_operand(instruction.operands, [&](const Operand& operand) {
        if (operand.reference == ptx::Reference::kGlobal) {
          place(context.module.variables[operand.index]);
        }
      });
    }
  }
  context.code.static_shared = static_cast<std::uint32_t>(end);
  end = (end + dynamic_align - 1) / dynamic_align * dynamic_align;
  context.code.dynamic_shared_offset = static_cast<std::uint32_t>(end);
  for (const ptx::Variable* variable : dynamic) {
    context.shared_offsets[variable] = static_cast<std::uint32_t>(end);
  }
}

std::optional<std::uint64_t> function_address(const ptx::Module& module, std::string_view name) {
  const Function* function = definition_of(module, name);
  if (!function) return std::nullopt;
  return kCodeWindow + static_cast<std::uint64_t>(function - module.functions.data() + 1) * 16;
}

Result<std::shared_ptr<const Program>> Program::decode(std::shared_ptr<const ptx::Module> module,
                                                       const Function& entry,
                                                       const SymbolTable& symbols, bool strict) {
  auto code = std::make_shared<Code>();
  code->module = module;
  if (auto placed = place_parameters(entry, code->info_); !placed) {
    return std::unexpected(std::move(placed.error()));
  }
  DecodeContext context{*module, symbols, *code, {}, {}, {}, {}};
  const std::vector<const Function*> functions = reachable_from(*module, entry);
  place_shared(context, functions);
  if (code->static_shared > kMaxStaticShared) {
    return fail(ErrorCode::kInvalidPtx,
                fmt::format("entry {} declares too much shared memory", entry.name));
  }
  for (const Function* function : functions) {
    if (function != &entry) {
      context.function_indices[function->name] = static_cast<std::int32_t>(code->functions.size());
    }
    FunctionCode& out = code->functions.emplace_back();
    out.name = std::string(function->name);
    if (function != &entry) out.address = *function_address(*module, function->name);
  }
  std::uint32_t peak = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    FunctionDecoder decoder(context, *functions[i], code->functions[i]);
    if (auto decoded = decoder.decode(); !decoded) {
      return std::unexpected(std::move(decoded.error()));
    }
    peak = std::max(peak, decoder.peak_registers());
  }
  if (strict && !code->unknown.empty()) {
    const UnknownInstruction& first = code->unknown.front();
    return fail(ErrorCode::kInvalidPtx,
                fmt::format("line {}: unknown instruction {}", first.line, first.text));
  }
  fill_info(*code, entry, peak);
  return code;
}

}  // namespace slate::sim
