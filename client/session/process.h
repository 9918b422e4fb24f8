// Process: what belongs to the program as a whole: the session (made on first need), the code it
// registered, its pinned memory. Made on first use, from whichever static initialiser that is, and
// never destroyed, since other threads and exit handlers may still be calling. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "client/session/allocation_table.h"
#include "client/session/code.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

class Process {
 public:
  static Process& get();

  Code& code() { return code_; }
  /// Pinned host memory, with tags of this kind.
  AllocationTable& pinned() { return pinned_; }
  static constexpr std::uint32_t kTagAllocated = 1;
  static constexpr std::uint32_t kTagRegistered = 2;
  /// Allocated, and a block of the session's at first, or a piece of one.
  static constexpr std::uint32_t kTagShared = 3;
  static constexpr std::uint32_t kTagPiece = 4;

  /// The lock of the fronts' own tables: whoever forks holds it meanwhile, as a child would wait
  /// for ever for a thread that it does not have. Nothing else is locked while it is held.
  std::mutex& tables_mutex() { return tables_mutex_; }

  /// The session; connects if there is none. A failure to connect is remembered until reset().
  Result<Session*> session() {
    Session* known = session_.load(std::memory_order_acquire);
    if (known != nullptr) [[likely]]
      return known;
    return connect();
  }
  /// The session if there is one.
  Session* current() const { return session_.load(std::memory_order_acquire); }
  /// The same if it is the one with that serial(); null once another one has taken its place.
  Session* current(std::uint64_t serial) const {
    Session* const session = current();
    return session != nullptr && session->serial() == serial ? session : nullptr;
  }
  /// Ends the session, and with it registrations of host memory. The next call that needs a session
  /// makes a new one.
  void reset();

 private:
  Process();
  Result<Session*> connect();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  Code code_;
  AllocationTable pinned_;
  std::mutex tables_mutex_;
  std::atomic<Session*> session_{nullptr};
  std::mutex mutex_;  // guards all below, and changes of session_
  std::optional<Error> refusal_;
  std::uint64_t sessions_made_ = 0;
  // A thread may be inside a call on a session that another thread resets, so the last one ended is
  // kept.
  std::unique_ptr<Session> owned_, ended_;
};

/// The kernel of the program's code that a host function pointer, or a kernel's own address, stands
/// for: kInvalidFunction for null, kInvalidHandle.
Allowed<Kernel*> kernel_of(const void* function);
/// The same, loaded into the session. kInvalidFunction also when its code has none of this name.
Allowed<Function*> function_of(Session& session, const void* function);

}  // namespace slate::client
