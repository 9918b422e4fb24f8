#include "ipc/shared_room.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace slate::ipc {

Result<void> take_room(int fd, std::uint64_t bytes, const char* what) {
  int error = 0;
  do {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return {};
  if (error == ENOSPC || error == ENOMEM)
    return fail(ErrorCode::kOutOfMemory, std::string("no room in /dev/shm for ") + what);
  return fail_errno(std::string("room in /dev/shm for ") + what, error);
}

}  // namespace slate::ipc
