// The end of a thread that violated the fence: it writes the record, if it is the first, and
// leaves. A worker's launch must end in order, so its leader counts the worker out, and no further
// task is handed out. Each check has an ending of its own: of one that several parts of a kernel
// lead to, the assembler thinks that lanes meet there, and not where the program brings them
// together. A function for it would cost each turn of a loop a `YIELD`. Text only. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "injector/ptx/module.h"

namespace slate::injector {

enum class EndingKind : std::uint8_t {
  kPlain,     // native and profile forms: `exit`
  kSlice,     // the same, but the block has a number
  kWorker,    // the leader leaves as when there are no tasks; other threads exit
  kDrained,   // the thread goes to the end of its block, as if it had returned
  kFunction,  // a device function: which of these is told by kBlockFacts, or kPlain
};

/// The kind of a function's ending. `knows_words`: whether kBlockFacts is there.
EndingKind ending_kind(const ptx::Function& function, bool knows_words, bool own_names);
/// Declarations that the ending needs, for the beginning of the body.
std::string ending_registers(EndingKind kind);
/// The ending with its labels (member_text.h). `number`: of the function, for the record.
/// `has_rows`: whether threads come with a row of kAccessTable.
std::string ending_text(EndingKind kind, const ptx::Function& function, std::uint32_t number,
                        bool has_rows);
/// Whether each check of a function may have an ending of its own. Else they share the one behind
/// the function.
bool may_end_in_place(EndingKind kind);
/// Such an ending, with other labels than those of all other places. `has_row`: whether threads
/// come with a row, not with a line.
std::string ending_in_place(EndingKind kind, const ptx::Function& function, std::uint32_t number,
                            bool has_row, std::uint32_t place);
/// The same for a thread that leaves without a record.
std::string leaving_in_place(EndingKind kind, std::uint32_t place);

/// Whether it is the worker form of a kernel, by its name.
bool is_worker(const ptx::Function& function);

}  // namespace slate::injector
