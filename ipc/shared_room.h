// Room in /dev/shm, which may be small and which all programs of the machine share. Files there
// take pages only when these are touched, and a program that touches a page without room gets
// SIGBUS. So slate takes the room that it needs at once. Thread: any.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace slate::ipc {

/// Makes `fd` at least `bytes` long, with room for all of it. `what` names it in the message.
/// Errors: kOutOfMemory when there is not so much room.
Result<void> take_room(int fd, std::uint64_t bytes, const char* what);

}  // namespace slate::ipc
