#include "base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/spin.h"

namespace slate {
namespace {

using std::chrono::milliseconds;

/// Whether another thread could lock it now.
bool is_free(Mutex& mutex) SLATE_NO_THREAD_SAFETY_ANALYSIS {
  bool free = false;
  std::thread([&]() SLATE_NO_THREAD_SAFETY_ANALYSIS {
    free = mutex.try_lock();
    if (free) mutex.unlock();
  }).join();
  return free;
}

TEST(MutexTest, ALockHoldsItsMutexUntilItsEnd) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, ALockCanGiveItsMutexBackForAWhile) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
    lock.lock();
    EXPECT_FALSE(is_free(mutex));
    lock.unlock();
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, ALockTakesOverALockedMutex) {
  Mutex mutex;
  mutex.lock();
  {
    const MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, LockSoonWaitsForTheMutex) {
  Mutex mutex;
  std::atomic<bool> given_back = false;
  std::atomic<bool> held = false;
  std::thread other([&] {
    const MutexLock lock(mutex);
    held = true;
    std::this_thread::sleep_for(milliseconds(5));
    given_back = true;
  });
  while (!held) std::this_thread::yield();
  {
    const MutexLock lock = lock_soon(mutex);
    EXPECT_TRUE(given_back);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
  other.join();
}

TEST(CondVarTest, AWaitGivesTheMutexBackAndEndsWithItsCondition) {
  Mutex mutex;
  CondVar changed;
  int value = 0;
  std::thread other([&] {
    {
      const MutexLock lock(mutex);
      value = 1;
    }
    changed.notify_one();
  });
  {
    MutexLock lock(mutex);
    changed.wait(lock, [&] { return value == 1; });
    EXPECT_FALSE(is_free(mutex));
  }
  other.join();
}

TEST(CondVarTest, AWaitWithALimitSaysWhetherTheConditionHolds) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(mutex);
  EXPECT_FALSE(changed.wait_for(lock, milliseconds(1), [] { return false; }));
  EXPECT_TRUE(changed.wait_for(lock, milliseconds(1), [] { return true; }));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(changed.wait_until(lock, now), std::cv_status::timeout);
  EXPECT_FALSE(is_free(mutex));
}

/// A writer waits until a lock of type Held is over. It has time to do otherwise.
template <typename Held>
void expect_writers_wait(SharedMutex& mutex) {
  std::atomic<bool> written{false};
  std::thread writer;
  {
    const Held lock(mutex);
    writer = std::thread([&] {
      const WriteLock alone(mutex);
      written = true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_FALSE(written);
  }
  writer.join();
  EXPECT_TRUE(written);
}

TEST(SharedMutexTest, ReadersShareItAndAWriterIsAlone) {
  SharedMutex mutex;
  {
    const ReadLock lock(mutex);
    std::thread([&] { const ReadLock beside(mutex); }).join();
  }
  expect_writers_wait<ReadLock>(mutex);
  expect_writers_wait<WriteLock>(mutex);
}

}  // namespace
}  // namespace slate
