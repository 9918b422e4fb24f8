// The block index of a rewritten kernel: code that computes %ctaid and %nctaid of the user's grid
// from the number of a block, put where the original reads the special registers. Device functions
// that were not inlined cannot see the kernel's parameters; copies of them read six words of shared
// memory.
#pragma once

#include <string>
#include <vector>

#include "injector/analysis/analysis.h"
#include "injector/forms/function_copy.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// Registers that the code below uses; goes into the kernel once. %__slate_block holds the number.
std::string block_index_registers();

std::string parameter_declaration();

/// Replaces every %ctaid.{x,y,z} and %nctaid.{x,y,z} in a copy of an entry. `before`: template of
/// the code that puts the number into %__slate_block, where that is not done once for the whole
/// block.
void replace_block_index(const ptx::Function& function, FunctionCopy& copy,
                         std::string_view before = {});

/// The same where the index is kept in registers between blocks: what fills them for the block
/// %__slate_block, what makes them those of the next block, and the reads. %__slate_p is used.
std::string begin_block_index(const ptx::Function& function);
std::string step_block_index(const ptx::Function& function);
/// As these two, but with what remains of the task in ~stop, so that the next block of a row costs
/// two additions and a comparison. Before: ~e is the task's end, with the flag. The second goes to
/// $indexed with the next block, or on when the task has been done. `barrier`: template of what
/// separates blocks.
std::string begin_run(const ptx::Function& function);
std::string step_run(const ptx::Function& function, std::string_view barrier);
void replace_kept_index(const ptx::Function& function, FunctionCopy& copy);

// --- Device functions
// ------------------------------------------------------------------------------

/// Functions that read the block index, or call one that does, by index into Module::functions.
std::vector<bool> functions_to_copy(const ptx::Module& module, const ModuleAnalysis& analysis);
/// The declaration of the six shared words, and the copies. Empty when no function needs one.
Result<std::string> copy_functions(const ptx::Module& module, const std::vector<bool>& wanted);
/// How their names end.
inline constexpr std::string_view kFunctionSuffix = "__slate_function";
/// Makes the calls in `copy` go to the copies, whose names end in `suffix`.
void redirect_calls(const ptx::Module& module, const ptx::Function& function,
                    const std::vector<bool>& wanted, FunctionCopy& copy,
                    std::string_view suffix = kFunctionSuffix);
/// Code for one thread of the block: writes the six words for the block %__slate_block. The others
/// see them behind a barrier.
std::string publish_block_index();

}  // namespace slate::injector
