// HostFunctions: the program's own functions that a session's streams call, and the thread that
// runs them. The first function starts the thread. For each function there is an event behind the
// work before it, and a gate in the stream. The thread waits for the event and opens the gate after
// the function.
//
// Thread: call() is for any. Functions run on the thread of this object, one at a time. Those of
// one stream run in their order; of several streams the first that can.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace slate::client {

class Session;

/// Gets the error that ended the session, if that came before the function's turn. The work before
/// the function may not be done then.
using HostFunction = std::function<void(const Result<void>& outcome)>;

class HostFunctions {
 public:
  explicit HostFunctions(Session& session) : session_(session) {}
  /// Requires: stop() was called.
  ~HostFunctions() = default;
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;

  /// Has `function` called on the thread of this object when all earlier work of the stream is
  /// done. Later work waits for its return. If the session's error came first, the function gets
  /// it.
  Result<void> call(std::uint64_t stream, HostFunction function);
  /// Runs the functions that were added, then ends the thread. Later calls of call() fail.
  /// Requires: the caller is none of its functions.
  void stop();
  /// Whether a function waits or runs. One atomic load.
  bool busy() const { return unfinished_.load(std::memory_order_acquire) > 0; }
  /// Whether the caller is a function that runs here.
  bool is_own_thread() const;

 private:
  struct Item {
    std::uint64_t stream;
    std::uint64_t event;   // event behind the work before the function; destroyed after it
    std::uint64_t ticket;  // ticket of the gate
    HostFunction function;
  };
  using Items = std::list<Item>;
  /// kOutOfMemory when no thread can be started; the gate is open then.
  Result<void> add(Item item);
  /// Waits until the engine has gates for the waiting functions.
  void wait_for_room();
  Result<void> open_gate(std::uint64_t ticket);
  void run();
  bool next(Item& item, Result<void>& outcome);
  std::vector<Items::iterator> first_of_each_stream() SLATE_REQUIRES(mutex_);
  std::optional<Items::iterator> look(const std::vector<Items::iterator>& first,
                                      Result<void>& outcome);

  Session& session_;
  std::atomic<std::uint64_t> unfinished_{0};
  Mutex order_mutex_;  // keeps gates and items_ in one order; locked before mutex_
  mutable Mutex mutex_;
  CondVar come_, went_;
  Items items_ SLATE_GUARDED_BY(mutex_);
  bool stopping_ SLATE_GUARDED_BY(mutex_) = false;
  // Of thread_, also while stop() joins it.
  std::thread::id thread_id_ SLATE_GUARDED_BY(mutex_);
  std::thread thread_;  // begun under the mutex; stop() joins it without, once none can begin
};

}  // namespace slate::client
