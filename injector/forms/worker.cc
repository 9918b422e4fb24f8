#include "injector/forms/worker.h"

#include <algorithm>

#include "injector/analysis/control_flow.h"
#include "injector/analysis/facts.h"
#include "injector/forms/block_index.h"
#include "injector/forms/function_copy.h"
#include "injector/forms/ptx_template.h"
#include "injector/forms/worker_text.h"

namespace slate::injector {
namespace {

/// A template whose labels are another one's.
std::string relabelled(std::string text, std::string_view prefix) {
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string::npos; at += prefix.size()) {
    text.insert(at + 1, prefix);
  }
  return text;
}

class WorkerWriter {
 public:
  WorkerWriter(const ptx::Function& function, const EntryAnalysis& entry,
               const WorkerOptions& options)
      : function_(function),
        entry_(entry),
        copies_(options.copies),
        // Blocks must be separate, as one word says which is present.
        lean_(options.lean && entry.separates_blocks && !entry.drains &&
              !entry.functions_read_block_index),
        counts_index_(!lean_ && !entry.drains && !entry.functions_read_block_index) {}

  /// From the brace to the kernel's first own instruction. `shared`: declarations.
  std::string prologue(const std::string& shared) const {
    std::string registers(text::kRegisters);
    if (copies_ != nullptr) {
      registers.append(text::kCopyRegisters).append(copies_->declaration());
    } else if (counts_index_) {
      registers += text::kRunRegisters;
    }
    std::string code(text::kWords);
    code += text::kFindLeader;
    if (copies_ != nullptr) code += copies_->begin();
    if (entry_.drains) code += "\tadd.u32 ~live, ~slot, 32;\n";
    code += "\t@!~leader bra $prepare;\n";
    if (entry_.drains) code += text::kClearCounts;
    code.append(text::kAddresses).append(text::kRegister).append(text::kAdmit);
    code += text::kPrepare;
    if (lean_) code += text::kLeanSkip;
    code.append(text::kAddresses).append(text::kTask).append(barrier());
    return block_index_registers() + expand(registers) + shared + expand(code) + turn();
  }

  /// From the place where the kernel's threads return to the closing brace.
  std::string epilogue() const {
    // Threads come here together or one by one, from wherever they return.
    std::string code("$return:\n");
    // Before the others are told: they may begin the next block.
    if (entry_.copies_asynchronously) code += "\tcp.async.wait_all;\n";
    if (entry_.drains) code.append(text::kCountThreads).append(text::kDrain);
    if (copies_ != nullptr) code += copies_->change();
    std::string expanded = expand(code);
    if (counts_index_) {
      const std::string_view separator = entry_.separates_blocks ? barrier() : "";
      expanded += copies_ != nullptr ? step_block_index(function_) : step_run(function_, separator);
    }
    code = next();
    code.append(text::kLeave).append(text::kAddresses).append(text::kCountOut);
    return expanded + expand(code);
  }

  /// The kernel's own instructions.
  void change(FunctionCopy& copy) const {
    if (counts_index_) {
      replace_kept_index(function_, copy);
    } else {
      replace_block_index(function_, copy, lean_ ? text::kLeanRead : "");
    }
    if (copies_ != nullptr) copies_->redirect(function_, copy);
    for (const ptx::Instruction& instruction : function_.instructions) {
      if (leaves(instruction)) copy.replace(instruction.opcode_span, expand("bra $return"));
    }
    if (entry_.drains) count_barriers(copy);
  }

 private:
  /// Aligned barriers go wrong where a warp has come apart: in a drain by counting, and after
  /// calls, behind which ptxas does not bring warps together.
  std::string_view barrier() const {
    const bool apart = entry_.drains || entry_.calls;
    return apart ? "\tbarrier.sync 0;\n" : "\tbar.sync 0;\n";
  }

  /// Behind the barrier that makes the task known: the task, then the block.
  std::string turn() const {
    if (copies_ != nullptr) return overlapping_turn();
    if (lean_) return expand(text::kLeanTurn);
    std::string code(text::kTurn);
    code.append(text::kAddresses).append(text::kFetchAhead).append("$block:\n");
    if (entry_.drains) code += text::kClearAhead;
    std::string expanded = expand(code);
    // Where it is counted, $block is where a task begins.
    if (counts_index_) expanded += begin_run(function_);
    if (entry_.functions_read_block_index) {
      expanded += expand("\t@!~leader bra $index;\n") + publish_block_index() +
                  expand(std::string("$index:\n").append(barrier()));
    }
    return expanded;
  }

  std::string overlapping_turn() const {
    std::string code(text::kFetchEarly);
    code.append(text::kAddresses).append(text::kFetchAhead);
    code.append(text::kIsLastBlock).append(text::kAddresses);
    code +=
        relabelled(std::string(text::kDecide) + "$prepare:\n" + std::string(text::kTask), "next_");
    code += text::kSettled;
    return expand(std::string(text::kTakeTask) + "$task:\n") + begin_block_index(function_) +
           expand(code);
  }

  /// The template of what follows a block.
  std::string next() const {
    if (copies_ != nullptr) return std::string(text::kHandOver);
    std::string code;
    if (lean_) {
      code.append(barrier()).append(text::kFindLeader).append(text::kLeanNext);
    } else {
      if (!counts_index_) add_next_block(code);
      code += text::kFetchAfter;
    }
    return code.append(text::kAddresses).append(text::kDecide);
  }

  void add_next_block(std::string& code) const {
    // The drain ends with a barrier.
    const bool meets =
        !entry_.drains && (entry_.separates_blocks || entry_.functions_read_block_index);
    code += text::kNextBlock;
    if (meets) code += barrier();
    code += "\tbra $block;\n$done:\n";
  }

  /// Every barrier of the kernel leads from one interval to the next.
  void count_barriers(FunctionCopy& copy) const {
    for (const ptx::Instruction& instruction : function_.instructions) {
      if (!is_block_barrier(instruction)) continue;
      copy.replace({instruction.opcode_span.begin, instruction.span.end},
                   expand(text::kDrainedBarrier));
    }
  }

  const ptx::Function& function_;
  const EntryAnalysis& entry_;
  const SharedCopies* copies_;
  const bool lean_;
  const bool counts_index_;
};

/// Takes the kernel's own shared variables out of its body. Declared before the worker's words they
/// keep their addresses, the first one that without an offset: an instruction less where it is
/// used.
std::string take_shared(const ptx::Function& function, FunctionCopy& copy) {
  std::string declarations;
  for (const ptx::Variable& variable : function.variables) {
    if (variable.space != ptx::Space::kShared) continue;
    const auto scope =
        std::ranges::upper_bound(function.scopes, variable.span.begin, {},
                                 [](const ptx::InnerScope& inner) { return inner.span.end; });
    if (scope != function.scopes.end() && scope->span.begin < variable.span.begin) continue;
    const std::string_view text = copy.take(variable);
    if (!text.empty()) declarations.append("\t").append(text).append("\n");
  }
  return declarations;
}

}  // namespace

Result<std::string> worker_form(const ptx::Module& module, const EntryAnalysis& entry,
                                const std::vector<bool>& copied, std::string_view name,
                                const WorkerOptions& options) {
  const ptx::Function& function = module.functions[entry.function];
  FunctionCopy copy(module, function, name);
  copy.add_parameter(parameter_declaration());
  if (options.most_registers != 0) copy.set_directive("maxnreg", options.most_registers);
  const WorkerWriter writer(function, entry, options);
  copy.prepend(
      writer.prologue(options.copies == nullptr ? take_shared(function, copy) : std::string()));
  writer.change(copy);
  redirect_calls(module, function, copied, copy);
  copy.append(writer.epilogue());
  return std::move(copy).text();
}

}  // namespace slate::injector
