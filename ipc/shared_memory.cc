#include "ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace slate::ipc {

Result<UniqueFd> make_shared_memory(const char* name, std::uint64_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("making shared memory");
  return fd;
}

Result<void> populate(int fd, std::uint64_t offset, std::uint64_t bytes) {
  int error = 0;
  do {
    error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return {};
  if (error == ENOSPC || error == ENOMEM)
    return fail(ErrorCode::kOutOfMemory, "no room for shared memory");
  return fail_errno("taking shared memory", error);
}

}  // namespace slate::ipc
