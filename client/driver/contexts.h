// Contexts: the handles that programs know as CUcontext. All of a process stand for its one session
// with the daemon; they differ in flags, number and local storage. The primary context has a handle
// before it is active. Each thread has a stack of contexts, of which the top one is current.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

#include "base/mutex.h"
#include "client/session/program_streams.h"

namespace slate::driver {

/// Values that libraries keep with a context, by keys of theirs. Reading takes no lock.
class LocalStorage {
 public:
  /// Runs when the context ends.
  using Destructor = void (*)(CUcontext context, void* key, void* value);

  /// CUDA_ERROR_OUT_OF_MEMORY when there are too many keys.
  CUresult put(void* key, void* value, Destructor destructor);
  /// CUDA_ERROR_INVALID_HANDLE for an unknown key, as the next.
  CUresult remove(void* key);
  CUresult get(void* key, void** value) const;
  /// Runs the destructors, and forgets all.
  void clear(CUcontext context);

 private:
  struct Entry {
    std::atomic<void*> key{nullptr};
    std::atomic<void*> value{nullptr};
    Destructor destructor = nullptr;
  };
  static constexpr std::size_t kMost = 64;

  Mutex mutex_;  // of changes
  std::array<Entry, kMost> entries_;
  std::atomic<std::size_t> used_{0};  // entries from the first on
};

/// Behind a CUcontext. Never freed: programs keep handles of contexts that ended.
struct Context {
  Context(std::uint64_t number, bool primary) : id(number), is_primary(primary) {}
  const std::uint64_t id;
  const bool is_primary;
  std::atomic<unsigned> flags{0};
  std::atomic<bool> is_active{false};  // retained, or created and not destroyed
  LocalStorage storage;

  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
};

/// What the front knows of a thread. Needs no construction, as hot calls read it.
struct Thread {
  static constexpr std::size_t kMostBelow = 255;
  std::array<Context*, kMostBelow> below{};  // pushed contexts, the oldest first; null ones too
  std::size_t below_count = 0;
  Context* current = nullptr;
  client::DefaultStream zero = client::DefaultStream::kLegacy;  // meaning of a null stream
};
extern constinit thread_local Thread thread_state;
inline Thread& this_thread() {
  return thread_state;
}

/// While it lives, null streams of the calling thread mean the thread's own default stream.
class PerThreadStreams {
 public:
  PerThreadStreams() : thread_(this_thread()), before_(thread_.zero) {
    thread_.zero = client::DefaultStream::kPerThread;
  }
  ~PerThreadStreams() { thread_.zero = before_; }
  PerThreadStreams(const PerThreadStreams&) = delete;
  PerThreadStreams& operator=(const PerThreadStreams&) = delete;

 private:
  Thread& thread_;
  const client::DefaultStream before_;
};

class Contexts {
 public:
  static Contexts& get();

  /// CUDA_SUCCESS if the thread has a live context; else CUDA_ERROR_INVALID_CONTEXT, or
  /// CUDA_ERROR_CONTEXT_IS_DESTROYED.
  static CUresult usable() {
    const Context* const current = this_thread().current;
    if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return current->is_active.load(std::memory_order_acquire) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }

  /// The primary context, active or not.
  Context& primary() { return *primary_; }
  /// The context behind a handle, ended or not; null when there never was one.
  Context* find(CUcontext handle) const;

  void retain_primary();
  /// CUDA_ERROR_INVALID_CONTEXT when it is not retained. The last release ends it.
  CUresult release_primary();
  /// Ends the primary context at once; holders keep their right to release it.
  void reset_primary();
  Context& create(unsigned flags);
  /// CUDA_ERROR_INVALID_CONTEXT for the primary or an ended one.
  CUresult destroy(Context& context);

 private:
  Contexts();
  /// Runs its destructors. With the last context, the session ends and all that it holds.
  void end(Context& context);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Context>> all_ SLATE_GUARDED_BY(mutex_);
  Context* const primary_;
  int retained_ SLATE_GUARDED_BY(mutex_) = 0;
  int active_ SLATE_GUARDED_BY(mutex_) = 0;  // contexts that are active
};

}  // namespace slate::driver
