// HostFunctions: the program's own functions that a session's streams call,
// and the one thread that runs them, started by the first. For each there is an event behind the
// work before it, which the thread looks for, and a gate in the stream, which it opens afterwards.
//
// call() from any thread; functions run on the thread of this object, one at a time: those of one
// stream in the order in which they were added, of several streams the first whose turn has come.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"

namespace slate::client {

class Session;

/// Gets the error that ended the session, if it ended before the function's turn; the work before
/// it may not be done then.
using HostFunction = std::function<void(const Result<void>& outcome)>;

class HostFunctions {
 public:
  explicit HostFunctions(Session& session) : session_(session) {}
  /// Requires: stop() was called.
  ~HostFunctions() = default;
  HostFunctions(const HostFunctions&) = delete;
  HostFunctions& operator=(const HostFunctions&) = delete;

  /// Has `function` called once all earlier work of the stream is done, on the thread of this
  /// object; later work waits until it has returned. With the session's error if that came first.
  Result<void> call(std::uint64_t stream, HostFunction function);
  /// Runs what was added, then ends the thread; call() fails from then on. Not from a function of
  /// its own.
  void stop();
  /// True while some function waits or runs. One atomic load.
  bool busy() const { return unfinished_.load(std::memory_order_acquire) > 0; }
  /// True in a function that runs here.
  bool is_own_thread() const;

 private:
  struct Item {
    std::uint64_t stream;
    std::uint64_t event;   // recorded behind the work before the function; destroyed here after it
    std::uint64_t ticket;  // of the gate
    HostFunction function;
  };
  using Items = std::list<Item>;
  /// kOutOfMemory when there can be no thread; the gate is then open.
  Result<void> add(Item item);
  /// Waits until few enough functions are waiting that the engine has gates for them.
  void wait_for_room();
  Result<void> open_gate(std::uint64_t ticket);
  void run();
  bool next(Item& item, Result<void>& outcome);
  std::vector<Items::iterator> first_of_each_stream();
  std::optional<Items::iterator> look(const std::vector<Items::iterator>& first,
                                      Result<void>& outcome);

  Session& session_;
  std::atomic<std::uint64_t> unfinished_{0};
  std::mutex order_mutex_;    // keeps gates and items_ in one order; comes before mutex_
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable come_, went_;
  Items items_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace slate::client
