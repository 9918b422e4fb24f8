#include "ipc/host_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace slate::ipc {
namespace {

TEST(HostMemoryTest, BothSidesSeeTheSameBytes) {
  const auto made = HostMemory::create(1, ::geteuid(), 8192);
  ASSERT_TRUE(made) << made.error().message;
  const auto opened = HostMemory::open(made->path(), 8192);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(::pwrite(made->fd(), "there", 6, 5000), 6);
  char text[6] = {};
  ASSERT_EQ(::pread(opened->get(), text, 6, 5000), 6);
  EXPECT_STREQ(text, "there");
  EXPECT_NE(::fcntl(opened->get(), F_GETFD) & FD_CLOEXEC, 0) << "not for the children's programs";
}

TEST(HostMemoryTest, TheClientCannotTakeItAwayUnderTheEngine) {
  const auto made = HostMemory::create(2, ::geteuid(), 8192);
  ASSERT_TRUE(made);
  const auto opened = HostMemory::open(made->path(), 8192);
  ASSERT_TRUE(opened);
  EXPECT_NE(::ftruncate(opened->get(), 0), 0);
}

TEST(HostMemoryTest, LessThanItShouldBeIsRefused) {
  const auto made = HostMemory::create(3, ::geteuid(), 4096);
  ASSERT_TRUE(made);
  EXPECT_FALSE(HostMemory::open(made->path(), 8192));
  EXPECT_FALSE(HostMemory::open("/proc/self/fd/99999", 4096));
}

TEST(HostMemoryTest, AnotherUsersHasANameUntilItIsOpened) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives memory to another user";
  const auto made = HostMemory::create(4, 12345, 4096);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(made->path().starts_with("/dev/shm/"));
  EXPECT_EQ(::access(made->path().c_str(), F_OK), 0);
  EXPECT_TRUE(HostMemory::open(made->path(), 4096));
  EXPECT_NE(::access(made->path().c_str(), F_OK), 0);
}

TEST(HostMemoryTest, WhatAKilledEngineLeftIsRemovedAndNothingElse) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string dead = "/dev/shm/slate-pinned-" + std::to_string(child) + "-1";
  const std::string alive = "/dev/shm/slate-pinned-" + std::to_string(::getpid()) + "-999";
  for (const std::string& path : {dead, alive})
    ASSERT_GE(UniqueFd(::open(path.c_str(), O_CREAT | O_RDWR, 0600)).get(), 0);
  HostMemory::remove_stale();
  EXPECT_NE(::access(dead.c_str(), F_OK), 0);
  EXPECT_EQ(::access(alive.c_str(), F_OK), 0);
  ::unlink(alive.c_str());
}

}  // namespace
}  // namespace slate::ipc
