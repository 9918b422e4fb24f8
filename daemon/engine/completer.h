// Completer: the engine's one thread that sees device work finish and runs what was waiting for it.
// Asleep while nothing is outstanding, but for a few microseconds at first, where there are cores
// to spare: the next piece of work is then noticed without a call of the system.
//
// Callbacks run on its thread, one at a time, and must not block. A callback gets the fault of the
// work when it did not end well; every callback runs exactly once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

/// A device event that is destroyed with its last user.
class SharedEvent {
 public:
  static Result<std::shared_ptr<SharedEvent>> make(device::Device& device, bool timing);
  SharedEvent(device::Device& device, device::Event event) : device_(device), event_(event) {}
  ~SharedEvent() { device_.destroy_event(event_); }
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  device::Event get() const { return event_; }

 private:
  device::Device& device_;
  device::Event event_;
};

class Completer {
 public:
  using Callback = std::function<void(const Result<void>& outcome)>;

  /// Counts the callbacks that one owner still has to expect.
  class Group {
   public:
    /// Waits until none is outstanding; false when `timeout` passed first.
    bool wait_empty(std::chrono::milliseconds timeout);

   private:
    friend class Completer;
    void enter();
    void leave();
    std::mutex mutex_;
    std::condition_variable empty_;
    std::uint64_t outstanding_ = 0;
  };

  /// `device` outlives it.
  explicit Completer(device::Device& device);
  /// Requires: nothing is outstanding any more, or the process is about to end.
  ~Completer();

  /// Runs `callback` when all work submitted so far on `stream` is done. Any thread, also a
  /// callback.
  Result<void> watch(Group& group, device::Stream stream, Callback callback);
  /// Runs `callback` when the work before the last record of `event` is done. `event` must not be
  /// recorded again while it is watched.
  void watch(Group& group, std::shared_ptr<SharedEvent> event, Callback callback);

  /// Events that tell the time, kept for those who need many. Any thread.
  Result<std::shared_ptr<SharedEvent>> take_timer();
  /// Requires: what was recorded with them has ended, or the device is lost.
  void give_back_timers(std::shared_ptr<SharedEvent> one, std::shared_ptr<SharedEvent> other);

 private:
  struct Item {
    Group* group;
    std::shared_ptr<SharedEvent> event;
    Callback callback;
    bool pooled;  // the event is ours, to be used again
  };
  using Queue = std::deque<Item>;

  Result<std::shared_ptr<SharedEvent>> take_event();
  void add(std::uint64_t queue, Item item);
  void run(const std::stop_token& stop);
  void accept_incoming();
  bool expect_work() const;
  bool check_all();
  bool check_streams();
  bool check_loose();
  bool finish_if_done(Item& item);

  device::Device& device_;
  std::mutex mutex_;  // guards incoming_, pool_, timers_
  std::condition_variable_any work_;
  std::vector<std::pair<std::uint64_t, Item>> incoming_;
  std::atomic<bool> has_incoming_{false};  // written under mutex_
  std::vector<std::shared_ptr<SharedEvent>> pool_;
  std::vector<std::shared_ptr<SharedEvent>> timers_;
  // Completer thread only. By stream, in the order of recording, so that only heads need a look.
  std::unordered_map<std::uint64_t, Queue> queues_;
  std::vector<Item> loose_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace slate::daemon
