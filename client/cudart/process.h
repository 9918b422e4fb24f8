// Process: what belongs to the program as a whole: the session (made on first need), the code it
// registered, its pinned memory, its device flags. Made on first use, from whichever static
// initialiser that is, and never destroyed, since other threads and exit handlers may still be
// calling. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "client/session/allocation_table.h"
#include "client/session/code.h"
#include "client/session/session.h"

namespace slate::cudart {

class Process {
 public:
  static Process& get();

  client::Code& code() { return code_; }
  /// Host memory of cudaMallocHost and cudaHostRegister, with tags of this kind.
  client::AllocationTable& pinned() { return pinned_; }
  static constexpr std::uint32_t kTagAllocated = 1;
  static constexpr std::uint32_t kTagRegistered = 2;
  /// Allocated, and a block of the session's at first, or a piece of one.
  static constexpr std::uint32_t kTagShared = 3;
  static constexpr std::uint32_t kTagPiece = 4;

  /// The locks of the front's own tables: whoever forks holds them meanwhile, as a child would wait
  /// for ever for a thread that it does not have. Nothing else is locked while one is held.
  enum class Table {
    kPools,
    kManagedAdvice,
    kStreamAttributes,
    kOwnHandles,
    kTextures,
    kSurfaces,
    kCount
  };
  std::mutex& mutex_of(Table table) { return tables_[static_cast<std::size_t>(table)]; }

  /// The session; connects if there is none. A failure to connect is remembered until reset().
  Result<client::Session*> session() {
    client::Session* known = session_.load(std::memory_order_acquire);
    if (known != nullptr) [[likely]]
      return known;
    return connect();
  }
  /// The session if there is one.
  client::Session* current() const { return session_.load(std::memory_order_acquire); }
  /// The same if it is the one with that serial(); null once another one has taken its place.
  client::Session* current(std::uint64_t serial) const {
    client::Session* const session = current();
    return session != nullptr && session->serial() == serial ? session : nullptr;
  }
  /// Ends the session, and with it registrations of host memory. The next call that needs a session
  /// makes a new one.
  void reset();

  std::atomic<unsigned> device_flags{0};

 private:
  Process();
  Result<client::Session*> connect();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  client::Code code_;
  client::AllocationTable pinned_;
  std::array<std::mutex, static_cast<std::size_t>(Table::kCount)> tables_;
  std::atomic<client::Session*> session_{nullptr};
  std::mutex mutex_;  // guards all below, and changes of session_
  std::optional<Error> refusal_;
  std::uint64_t sessions_made_ = 0;
  // A thread may be inside a call on a session that another thread resets, so the last one ended is
  // kept.
  std::unique_ptr<client::Session> owned_, ended_;
};

}  // namespace slate::cudart
