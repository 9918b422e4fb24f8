#include "base/whole_bytes.h"

#include <unistd.h>

#include <cerrno>

namespace slate {
namespace {

/// Passes a piece at a time, by ::read or ::write.
template <typename Bytes, typename Pass>
bool pass_all(int fd, Bytes bytes, const Pass& pass) {
  while (!bytes.empty()) {
    const ssize_t passed = pass(fd, bytes.data(), bytes.size());
    if (passed < 0 && errno == EINTR) continue;
    if (passed <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(passed));
  }
  return true;
}

}  // namespace

bool read_all(int fd, std::span<std::byte> to) {
  return pass_all(fd, to, ::read);
}

bool write_all(int fd, std::span<const std::byte> from) {
  return pass_all(fd, from, ::write);
}

}  // namespace slate
