#include "ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <cerrno>
#include <string>

namespace slate::ipc {
namespace {

namespace bip = boost::interprocess;

/// Memory without a name, in the shape that Boost's mapped_region maps.
class Unnamed {
 public:
  explicit Unnamed(int fd) : fd_(fd) {}
  bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd_);
  }
  static bip::mode_t get_mode() { return bip::read_write; }

 private:
  int fd_;
};

}  // namespace

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

Result<bip::mapped_region> map_shared_memory(int fd, std::uint64_t bytes, std::string_view what) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return fail_errno(std::string(what));
  if (static_cast<std::uint64_t>(found.st_size) != bytes)
    return fail(ErrorCode::kProtocol, std::string(what) + " is not of this version's size");
  try {
    return bip::mapped_region(Unnamed(fd), bip::read_write, 0, bytes);
  } catch (const bip::interprocess_exception& e) {
    return fail(ErrorCode::kIo, "mapping " + std::string(what) + ": " + e.what());
  }
}

}  // namespace slate::ipc
