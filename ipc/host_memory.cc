#include "ipc/host_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "ipc/shared_room.h"

namespace slate::ipc {
namespace {

constexpr std::string_view kFolder = "/dev/shm/";
constexpr std::string_view kPrefix = "slate-pinned-";  // then the engine's pid, '-', a number

bool has_name(std::string_view path) {
  return path.starts_with(kFolder);
}

Result<UniqueFd> make_unnamed(std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("slate-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return fail_errno("shared host memory");
  // What this process has mapped must not be taken away under it.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno("sealing shared host memory");
  return fd;
}

Result<UniqueFd> make_named(const std::string& path, uid_t owner, std::uint64_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("shared host memory " + path);
  auto done = take_room(fd.get(), bytes, "shared host memory");
  if (done && ::fchown(fd.get(), owner, static_cast<gid_t>(-1)) != 0)
    done = fail_errno("shared host memory " + path);
  if (done) return fd;
  ::unlink(path.c_str());
  return std::unexpected(done.error());
}

}  // namespace

bool HostMemory::is_named(uid_t owner) {
  return owner != ::geteuid();
}

Result<HostMemory> HostMemory::create(std::uint64_t number, uid_t owner, std::uint64_t bytes) {
  if (!is_named(owner)) {
    auto fd = make_unnamed(bytes);
    if (!fd) return std::unexpected(fd.error());
    std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd->get());
    return HostMemory(std::move(*fd), std::move(path));
  }
  std::string path = std::string(kFolder) + std::string(kPrefix) + std::to_string(::getpid()) +
                     "-" + std::to_string(number);
  auto fd = make_named(path, owner, bytes);
  if (!fd) return std::unexpected(fd.error());
  return HostMemory(std::move(*fd), std::move(path));
}

Result<UniqueFd> HostMemory::open(std::string_view path, std::uint64_t bytes) {
  const std::string name(path);
  UniqueFd fd(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (has_name(path)) ::unlink(name.c_str());
  if (!fd) return fail_errno("shared host memory " + name);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < bytes)
    return fail(ErrorCode::kIo, "shared host memory " + name + " is too small");
  return fd;
}

void HostMemory::remove_stale() {
  DIR* const directory = ::opendir(std::string(kFolder).c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): own DIR
    std::string_view name(entry->d_name);
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) ::unlinkat(::dirfd(directory), entry->d_name, 0);
  }
  ::closedir(directory);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

HostMemory::~HostMemory() {
  if (has_name(path_)) ::unlink(path_.c_str());
}

}  // namespace slate::ipc
