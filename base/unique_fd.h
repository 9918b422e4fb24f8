// UniqueFd: owns one file descriptor and closes it. Movable, not copyable. It reports no errors of
// close(). Thread: one at a time.
#pragma once

#include <unistd.h>

#include <utility>

namespace slate {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  /// The descriptor; -1: none. Still owned.
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives up the ownership. Returns the descriptor; -1: none.
  int release() { return std::exchange(fd_, -1); }
  /// Closes the descriptor and owns `fd` instead.
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace slate
