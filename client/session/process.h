// Process: what belongs to the whole program: the session (made on first need), the registered
// code, and the pinned memory. Made on first use, in any static initialiser. Never destroyed, as
// other threads and exit handlers may still call. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "client/session/allocation_table.h"
#include "client/session/code.h"
#include "client/session/device_limits.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

class Process {
 public:
  static Process& get();

  Code& code() { return code_; }
  /// Pinned host memory, with the tags below.
  AllocationTable& pinned() { return pinned_; }
  static constexpr std::uint32_t kTagAllocated = 1;
  static constexpr std::uint32_t kTagRegistered = 2;
  /// Allocated; a block of the session's, or a piece of one.
  static constexpr std::uint32_t kTagShared = 3;
  static constexpr std::uint32_t kTagPiece = 4;

  DeviceLimits& limits() { return limits_; }

  /// The lock of the fronts' own tables. No other lock is taken under it. fork() holds it
  /// meanwhile, as the child would wait for ever for another thread.
  Mutex& tables_mutex() { return tables_mutex_; }

  /// The session; connects if there is none. A failure to connect is kept until reset().
  Result<Session*> session() {
    Session* known = session_.load(std::memory_order_acquire);
    if (known != nullptr) [[likely]]
      return known;
    return connect();
  }
  /// The session if there is one, else null.
  Session* current() const { return session_.load(std::memory_order_acquire); }
  /// The session with that serial(); null once another one has replaced it.
  Session* current(std::uint64_t serial) const {
    Session* const session = current();
    return session != nullptr && session->serial() == serial ? session : nullptr;
  }
  /// Ends the session, and its registrations of host memory. The next call that needs a session
  /// makes a new one.
  void reset();

 private:
  Process();
  Result<Session*> connect();
  static void before_fork() SLATE_NO_THREAD_SAFETY_ANALYSIS;
  static void after_fork_in_parent() SLATE_NO_THREAD_SAFETY_ANALYSIS;
  static void after_fork_in_child() SLATE_NO_THREAD_SAFETY_ANALYSIS;

  Code code_;
  AllocationTable pinned_;
  DeviceLimits limits_;
  Mutex tables_mutex_;
  std::atomic<Session*> session_{nullptr};
  Mutex mutex_;  // guards changes of session_, too
  std::optional<Error> refusal_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t sessions_made_ SLATE_GUARDED_BY(mutex_) = 0;
  // The last session that was ended is kept: a thread may be inside a call on it when another
  // thread resets it.
  std::unique_ptr<Session> owned_ SLATE_GUARDED_BY(mutex_), ended_ SLATE_GUARDED_BY(mutex_);
};

/// The kernel of the program's code behind a host function pointer or a kernel's own address.
/// kInvalidFunction for null, kInvalidHandle.
Allowed<Kernel*> kernel_of(const void* function);
/// As kernel_of(), loaded into the session. kInvalidFunction also when its code has no such name.
Allowed<Function*> function_of(Session& session, const void* function);

/// Gives the handles of a library's first kernels, at most `count`. kInvalidValue without places.
template <typename Handle>
Allowed<void> tell_kernels(Session& session, FatBinary& library, Handle* places, unsigned count) {
  if (places == nullptr && count > 0) return refuse(Refusal::kInvalidValue);
  Code& code = Process::get().code();
  const auto names = code.library_kernels(session, library);
  if (!names) return std::unexpected<Refused>(names.error());
  for (std::size_t i = 0; i < names->size() && i < count; ++i) {
    const auto kernel = code.library_kernel(session, library, (*names)[i]);
    if (!kernel) return std::unexpected<Refused>(kernel.error());
    places[i] = reinterpret_cast<Handle>(*kernel);
  }
  return {};
}

}  // namespace slate::client
