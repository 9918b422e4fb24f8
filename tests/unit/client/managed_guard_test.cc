#include "client/session/managed_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <thread>

namespace slate::client {
namespace {

constexpr std::uint64_t kMark = 7;

class ManagedGuardTest : public ::testing::Test {
 protected:
  ManagedGuardTest() {
    memory_ = static_cast<volatile int*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    guard_.add(reinterpret_cast<std::uintptr_t>(memory_), kBytes);
  }
  ~ManagedGuardTest() override {
    guard_.stop();
    ::munmap(const_cast<int*>(memory_), kBytes);
  }
  /// Sends a kernel, which runs until done_.
  void launch() {
    ManagedGuard::Launch launch(guard_);
    EXPECT_TRUE(launch.guarded());
    launch.sent(0, kMark);
  }
  /// System calls fail on memory that is closed, and wait for nothing.
  bool is_open() const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const bool open = ::write(ends[1], const_cast<int*>(memory_), 4) == 4;
    ::close(ends[0]);
    ::close(ends[1]);
    return open;
  }

  static constexpr std::size_t kBytes = 8192;
  volatile int* memory_;
  std::atomic<bool> done_{false}, over_{false}, in_function_{false};
  ManagedGuard guard_{{[this](std::uint64_t) { return done_.load(); },
                       [this] { return over_.load(); }, [this] { return in_function_.load(); }}};
};

TEST_F(ManagedGuardTest, KernelsNeedAGuardAsLongAsThereIsManagedMemory) {
  EXPECT_TRUE(guard_.has_memory());
  guard_.remove(reinterpret_cast<std::uintptr_t>(memory_));
  EXPECT_FALSE(guard_.has_memory());
  guard_.add(reinterpret_cast<std::uintptr_t>(memory_), kBytes);
  EXPECT_TRUE(guard_.has_memory());
}

TEST_F(ManagedGuardTest, ATouchWaitsForTheKernelsEnd) {
  launch();
  EXPECT_FALSE(is_open());
  std::atomic<bool> touched{false};
  std::jthread host([&] {
    memory_[0] = memory_[0] + 1;
    touched = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(touched);
  done_ = true;
  host.join();
  EXPECT_TRUE(touched);
  EXPECT_TRUE(is_open()) << "for all threads and system calls";
}

TEST_F(ManagedGuardTest, WhoeverSawTheEndOfTheWorkFindsTheMemoryOpen) {
  launch();
  guard_.open_if_done();
  EXPECT_FALSE(is_open());
  done_ = true;
  guard_.open_if_done();
  EXPECT_TRUE(is_open());
}

TEST_F(ManagedGuardTest, MemoryStaysClosedUntilTheLastKernelIsOver) {
  launch();
  ManagedGuard::Launch second(guard_);
  done_ = true;
  guard_.open_if_done();
  EXPECT_FALSE(is_open()) << "one is being sent";
}

TEST_F(ManagedGuardTest, TheEndOfTheSessionOpensTheMemory) {
  launch();
  over_ = true;
  memory_[0] = 1;
  EXPECT_TRUE(is_open());
}

TEST_F(ManagedGuardTest, AHostFunctionDoesNotWaitForTheKernelsBehindIt) {
  launch();
  in_function_ = true;
  memory_[0] = 3;
  EXPECT_TRUE(is_open());
  guard_.host_function_ended();
  EXPECT_FALSE(is_open());
  in_function_ = false;
  done_ = true;
  EXPECT_EQ(memory_[0], 3);
}

TEST_F(ManagedGuardTest, WithoutMemoryThereIsNothingToClose) {
  guard_.remove(reinterpret_cast<std::uintptr_t>(memory_));
  launch();
  EXPECT_TRUE(is_open());
}

sigjmp_buf after_fault;

TEST_F(ManagedGuardTest, OtherFaultsAreTheProgramsOwn) {
  struct sigaction own {
  }, before{};
  own.sa_handler = [](int) { ::siglongjmp(after_fault, 1); };
  ASSERT_EQ(::sigaction(SIGSEGV, &own, &before), 0);
  launch();
  void* const elsewhere = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool caught = false;
  if (::sigsetjmp(after_fault, 1) == 0) {
    *static_cast<volatile int*>(elsewhere) = 1;
  } else {
    caught = true;
  }
  EXPECT_TRUE(caught);
  ::munmap(elsewhere, kBytes);
  done_ = true;
  memory_[0] = 5;
  EXPECT_EQ(memory_[0], 5) << "ours is in front of the program's handler";
  ::sigaction(SIGSEGV, &before, nullptr);
}

TEST(SystemAtomicsTest, AreFoundByTheScopeOfAnAtomicOperation) {
  for (const char* text :
       {"atom.sys.global.add.u32 %r1, [%rd1], 1;", "red.relaxed.sys.global.add.u32 [%rd1], 1;",
        "@%p1 atom.add.release.sys.u32 %r1, [%rd1], 1;", "\tatom.cas.acquire.sys"})
    EXPECT_TRUE(has_system_atomics(text)) << text;
  for (const char* text :
       {"", "atom.global.add.u32 %r1, [%rd1], 1;", "ld.acquire.sys.u32 %r1, [%rd1];",
        "membar.sys; fence.sc.sys;", "atom.gpu.add.u32 %r1, [x.sys], 1;", "reduce.sys", ".sys",
        "atom.system.add"})
    EXPECT_FALSE(has_system_atomics(text)) << text;
}

}  // namespace
}  // namespace slate::client
