#include "injector/forms/worker.h"

#include "injector/analysis/control_flow.h"
#include "injector/forms/block_index.h"
#include "injector/forms/function_copy.h"
#include "injector/forms/ptx_template.h"
#include "injector/forms/worker_text.h"

namespace slate::injector {
namespace {

class WorkerWriter {
 public:
  WorkerWriter(const EntryAnalysis& entry, bool lean) : entry_(entry), lean_(lean) {}

  /// From the brace to the kernel's first own instruction.
  std::string prologue() const {
    std::string code(text::kRegisters);
    code += text::kFindLeader;
    if (entry_.drains) code += "\tadd.u32 ~live, ~slot, 32;\n";
    code += "\t@!~leader bra $prepare;\n";
    if (entry_.drains) code += text::kClearCounts;
    code.append(text::kAddresses).append(text::kRegister).append(text::kAdmit);
    code += text::kPrepare;
    if (lean_) code += text::kLeanSkip;
    code.append(text::kAddresses).append(text::kTask).append(barrier());
    if (lean_) {
      code += text::kLeanTurn;
    } else {
      code.append(text::kTurn).append(text::kAddresses).append(text::kFetchAhead);
      code += "$block:\n";
    }
    if (entry_.drains) code += text::kClearAhead;
    std::string expanded = block_index_registers() + expand(code);
    if (entry_.functions_read_block_index) {
      expanded += expand("\t@!~leader bra $index;\n") + publish_block_index() +
                  expand(std::string("$index:\n").append(barrier()));
    }
    return expanded;
  }

  /// From the place where the kernel's threads return to the closing brace.
  std::string epilogue() const {
    std::string code;
    // Threads come here together or one by one, from wherever they return.
    code += kReturnLabel;
    if (entry_.drains) code.append(text::kCountThreads).append(text::kDrain);
    if (entry_.copies_asynchronously) code += "\tcp.async.wait_all;\n";
    lean_ ? add_lean_next(code) : add_next(code);
    code.append(text::kAddresses).append(text::kDecide);
    code.append(text::kLeave).append(text::kAddresses).append(text::kCountOut);
    return expand(code);
  }

 private:
  static constexpr std::string_view kReturnLabel = "$return:\n";

  /// Aligned barriers go wrong where a warp has come apart: in a drain by counting, and after
  /// calls, behind which ptxas does not bring warps together.
  std::string_view barrier() const {
    const bool apart = entry_.drains || entry_.calls;
    return apart ? "\tbarrier.sync 0;\n" : "\tbar.sync 0;\n";
  }

  void add_next(std::string& code) const {
    code += text::kNextBlock;
    const bool together = entry_.drains;  // the drain ends with a barrier
    if ((entry_.separates_blocks || entry_.functions_read_block_index) && !together) {
      code.append("\t@!~p bra $done;\n").append(barrier()).append("\tbra $block;\n$done:\n");
    } else {
      code += "\t@~p bra $block;\n";
    }
    code += text::kFetchAfter;
  }

  void add_lean_next(std::string& code) const {
    code.append(barrier()).append(text::kFindLeader).append(text::kLeanNext);
  }

  const EntryAnalysis& entry_;
  const bool lean_;
};

/// Every barrier of the kernel leads from one interval to the next.
void count_barriers(const ptx::Function& function, FunctionCopy& copy) {
  for (const ptx::Instruction& instruction : function.instructions) {
    if (is_block_barrier(instruction)) {
      copy.replace({instruction.opcode_span.begin, instruction.span.end},
                   expand(text::kDrainedBarrier));
    }
  }
}

}  // namespace

Result<std::string> worker_form(const ptx::Module& module, const EntryAnalysis& entry,
                                const std::vector<bool>& copied, std::string_view name,
                                const EntryOptions& options) {
  const ptx::Function& function = module.functions[entry.function];
  FunctionCopy copy(module, function, name);
  copy.add_parameter(parameter_declaration());
  if (options.most_registers != 0) copy.set_directive("maxnreg", options.most_registers);
  // A limit says that registers are short. Blocks must be separate, as one word says which is
  // present.
  const bool lean = options.most_registers != 0 && entry.separates_blocks && !entry.drains &&
                    !entry.functions_read_block_index;
  const WorkerWriter writer(entry, lean);
  copy.prepend(writer.prologue());
  replace_block_index(function, copy, lean ? text::kLeanRead : "");
  redirect_calls(module, function, copied, copy);
  for (const ptx::Instruction& instruction : function.instructions) {
    if (leaves(instruction)) copy.replace(instruction.opcode_span, expand("bra $return"));
  }
  if (entry.drains) count_barriers(function, copy);
  copy.append(writer.epilogue());
  return std::move(copy).text();
}

}  // namespace slate::injector
