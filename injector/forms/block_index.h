// The block index of a rewritten kernel: code that computes %ctaid and %nctaid of the program's
// grid from the number of a block, in place of the special registers. Device functions that were
// not inlined cannot see the kernel's parameters; copies of them read six words of shared memory.
// Pure functions. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/function_copy.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Registers that the code below uses, declared once in the kernel. %__slate_block holds the
/// block's number.
std::string block_index_registers();

/// The declaration of the parameter that the code below reads.
std::string parameter_declaration();

/// Replaces every %ctaid.{x,y,z} and %nctaid.{x,y,z} in a copy of an entry. `before`: template of
/// code that puts the number into %__slate_block, where that is not done once for the whole block.
void replace_block_index(const ptx::Function& function, FunctionCopy& copy,
                         std::string_view before = {});

/// As replace_block_index(), with the index kept in registers between blocks. begin_block_index()
/// fills the registers for the block %__slate_block, step_block_index() makes them those of the
/// next block, and replace_kept_index() reads them. They use %__slate_p.
std::string begin_block_index(const ptx::Function& function);
std::string step_block_index(const ptx::Function& function);
/// As begin_block_index() and step_block_index(), with the rest of the task in ~stop, so that the
/// next block of a row costs two additions and a comparison. Before: ~e is the task's end, with the
/// flag. step_run() jumps to $indexed with the next block, or goes on when the task is done.
/// `barrier`: template of what separates blocks.
std::string begin_run(const ptx::Function& function);
std::string step_run(const ptx::Function& function, std::string_view barrier);
void replace_kept_index(const ptx::Function& function, FunctionCopy& copy);

// --- Device functions

/// Which functions read the block index, or call one that does; by index into Module::functions.
std::vector<bool> functions_to_copy(const ptx::Module& module, const ModuleAnalysis& analysis);
/// The declaration of the six shared words, and the copies; empty when no function needs one.
/// Errors: kInternal.
Result<std::string> copy_functions(const ptx::Module& module, const std::vector<bool>& wanted);
/// End of the copies' names.
inline constexpr std::string_view kFunctionSuffix = "__slate_function";
/// Lets the calls in `copy` go to the copies, whose names end in `suffix`.
void redirect_calls(const ptx::Module& module, const ptx::Function& function,
                    const std::vector<bool>& wanted, FunctionCopy& copy,
                    std::string_view suffix = kFunctionSuffix);
/// Code for one thread of the block: writes the six words for the block %__slate_block. The other
/// threads see them behind a barrier.
std::string publish_block_index();

}  // namespace slate::injector
