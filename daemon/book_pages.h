// BookPages: the pages of a part of a session's book, which are taken in steps before anything is
// written there. A write to a page that is not to be had would end the process. One thread at a
// time.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {

class BookPages {
 public:
  /// The part begins at `begin` of the shared memory `fd`.
  BookPages(int fd, std::uint64_t begin) : fd_(fd), begin_(begin) {}

  /// Takes the pages of the first `bytes`. Errors: kOutOfMemory, kIo.
  Result<void> take(std::uint64_t bytes) {
    if (bytes <= taken_) return {};
    const std::uint64_t upto = (bytes + kStep - 1) / kStep * kStep;
    auto done = ipc::populate(fd_, begin_ + taken_, upto - taken_);
    if (done) taken_ = upto;
    return done;
  }

 private:
  static constexpr std::uint64_t kStep = 64 << 10;

  const int fd_;
  const std::uint64_t begin_;
  std::uint64_t taken_ = 0;
};

}  // namespace slate::daemon
