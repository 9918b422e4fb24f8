// Room in /dev/shm, which may be small, and which all programs of the machine share: files there
// take pages only when these are touched, and who touches one that there is no room for gets a
// signal. So what must be there is taken at once.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace slate::ipc {

/// Makes `fd` at least `bytes` long, with room for all of it. kOutOfMemory when there is not so
/// much; `what` is for the message.
Result<void> take_room(int fd, std::uint64_t bytes, const char* what);

}  // namespace slate::ipc
