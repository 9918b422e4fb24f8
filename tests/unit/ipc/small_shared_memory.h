// A process whose /dev/shm is small, for tests of what happens when it is full.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace slate::ipc {

/// What `body` returns in such a process, where gtest's checks are not heard; nullopt where this
/// user cannot have one. Requires: `body` needs no other thread of this process.
inline std::optional<int> with_small_shared_memory(std::uint64_t bytes,
                                                   const std::function<int()>& body) {
  constexpr int kCannot = 99;
  const std::string size = "mode=1777,size=" + std::to_string(bytes);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool made =
        ::unshare(CLONE_NEWNS) == 0 &&
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()) == 0;
    ::_exit(made ? body() : kCannot);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (!WIFEXITED(status)) return -WTERMSIG(status);
  return WEXITSTATUS(status) == kCannot ? std::nullopt : std::optional(WEXITSTATUS(status));
}

}  // namespace slate::ipc
