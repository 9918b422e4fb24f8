// Mutex, SharedMutex, their locks and CondVar: the standard ones with the annotations of clang's
// thread safety analysis, which scripts/thread_safety runs. Other compilers see the standard ones.
// Mutexes in shared memory, and those handed to code of others, stay plain. Thread: any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#ifdef __clang__
#define SLATE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SLATE_THREAD_ANNOTATION(x)
#endif

// On a member: it is read and written under this mutex only. The second: what it points to is.
#define SLATE_GUARDED_BY(x) SLATE_THREAD_ANNOTATION(guarded_by(x))
#define SLATE_PT_GUARDED_BY(x) SLATE_THREAD_ANNOTATION(pt_guarded_by(x))
// On a function: its caller holds these mutexes.
#define SLATE_REQUIRES(...) SLATE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define SLATE_REQUIRES_SHARED(...) SLATE_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
// On a function: it locks or unlocks these mutexes; without one, this object.
#define SLATE_ACQUIRE(...) SLATE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define SLATE_ACQUIRE_SHARED(...) SLATE_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define SLATE_TRY_ACQUIRE(...) SLATE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define SLATE_RELEASE(...) SLATE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define SLATE_RELEASE_SHARED(...) SLATE_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
// On a function that the analysis cannot follow. Say why beside it.
#define SLATE_NO_THREAD_SAFETY_ANALYSIS SLATE_THREAD_ANNOTATION(no_thread_safety_analysis)
// On a class.
#define SLATE_CAPABILITY(x) SLATE_THREAD_ANNOTATION(capability(x))
#define SLATE_SCOPED_CAPABILITY SLATE_THREAD_ANNOTATION(scoped_lockable)

namespace slate {

/// std::mutex. Lock it by MutexLock.
class SLATE_CAPABILITY("mutex") Mutex {
 public:
  void lock() SLATE_ACQUIRE() { native_.lock(); }
  bool try_lock() SLATE_TRY_ACQUIRE(true) { return native_.try_lock(); }
  void unlock() SLATE_RELEASE() { native_.unlock(); }

 private:
  friend class MutexLock;

  std::mutex native_;
};

/// Holds a Mutex from its construction to its end, but for the time between unlock() and lock().
class SLATE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SLATE_ACQUIRE(mutex) : lock_(mutex.native_) {}
  /// Takes over a mutex that the caller has locked.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) SLATE_REQUIRES(mutex)
      : lock_(mutex.native_, adopt) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() SLATE_RELEASE() {}

  /// Requires: this lock does not hold its mutex.
  void lock() SLATE_ACQUIRE() { lock_.lock(); }
  /// Requires: this lock holds its mutex.
  void unlock() SLATE_RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;

  std::unique_lock<std::mutex> lock_;
};

/// std::condition_variable for MutexLock. Requires, of every wait: the lock holds its mutex.
/// A predicate that reads guarded members says so: `[this]() SLATE_REQUIRES(mutex_) { ... }`.
class CondVar {
 public:
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }

  void wait(MutexLock& lock) { native_.wait(lock.lock_); }
  template <class Predicate>
  void wait(MutexLock& lock, Predicate predicate) {
    native_.wait(lock.lock_, std::move(predicate));
  }
  template <class Time>
  std::cv_status wait_until(MutexLock& lock, const Time& time) {
    return native_.wait_until(lock.lock_, time);
  }
  template <class Duration>
  std::cv_status wait_for(MutexLock& lock, const Duration& duration) {
    return native_.wait_for(lock.lock_, duration);
  }
  template <class Duration, class Predicate>
  bool wait_for(MutexLock& lock, const Duration& duration, Predicate predicate) {
    return native_.wait_for(lock.lock_, duration, std::move(predicate));
  }

 private:
  std::condition_variable native_;
};

/// std::shared_mutex. Lock it by WriteLock or ReadLock.
class SLATE_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() SLATE_ACQUIRE() { native_.lock(); }
  void unlock() SLATE_RELEASE() { native_.unlock(); }
  void lock_shared() SLATE_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() SLATE_RELEASE_SHARED() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

/// Holds a SharedMutex alone.
class SLATE_SCOPED_CAPABILITY WriteLock {
 public:
  explicit WriteLock(SharedMutex& mutex) SLATE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;
  ~WriteLock() SLATE_RELEASE() { mutex_.unlock(); }

 private:
  SharedMutex& mutex_;
};

/// Holds a SharedMutex beside other ReadLocks: what it guards may be read.
class SLATE_SCOPED_CAPABILITY ReadLock {
 public:
  explicit ReadLock(SharedMutex& mutex) SLATE_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
  ~ReadLock() SLATE_RELEASE() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

}  // namespace slate
