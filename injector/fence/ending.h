// The end of a thread that violated the fence: it writes the record, if it is the first, and
// leaves. A worker's launch must end in order, so its leader counts the worker out, and no further
// task is handed out. Text only. Thread: any.
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
/// The text behind the function's last instruction. `number`: for the record. `has_rows`: whether
/// there is a kAccessTable.
std::string ending_text(EndingKind kind, const ptx::Function& function, std::uint32_t number,
                        bool has_rows);

/// Whether it is the worker form of a kernel, by its name.
bool is_worker(const ptx::Function& function);

}  // namespace slate::injector
