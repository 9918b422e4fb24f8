// What a reader's process gives up before it sees a stranger's text. From then on it computes, and
// reads and writes the descriptors that it has: no files, sockets, other programs or threads, no
// other process's memory, no new machine code. Called once, by the process's only thread.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace slate::daemon {

/// Limits of a reader of `text_bytes` bytes: its memory, its processor time, no files. The kernel
/// ends it first when memory is short. Errors: kIo.
Result<void> limit_reader(std::uint64_t text_bytes);

/// The most memory of a reader, in bytes.
std::uint64_t reader_memory(std::uint64_t text_bytes);

/// Gives up the user, if it is root, and all system calls but a few. A call of another one ends the
/// process. Errors: kIo, kNotSupported where the kernel has no such filter.
Result<void> enter_sandbox();

}  // namespace slate::daemon
