// Completer: sees device work end, and runs the callbacks that wait for it. Each session's thread
// looks for the ends of its own work while it is awake, which is the quickest way. For a thread
// that sleeps or is busy, the completer's thread does. It sleeps while nothing is outstanding.
//
// Callbacks run on one of these threads, those of one group one at a time. They must not block. A
// callback gets the fault of its work, if there is one. Every callback runs exactly once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/mutex.h"
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
  struct Watches;

 public:
  using Callback = std::function<void(const Result<void>& outcome)>;

  /// The watches of one owner, a session.
  class Group {
   public:
    Group();
    bool empty() const;
    /// Watches whose callback has not run.
    std::uint64_t outstanding() const;
    /// Has `fewer` called each time that the outstanding watches fall below `few`, on the thread
    /// that sees it. Requires: few > 1, and nothing was watched yet.
    void tell(std::uint64_t few, std::function<void()> fewer);
    /// Waits until nothing is outstanding; false when `timeout` passed first.
    bool wait_empty(std::chrono::milliseconds timeout);

   private:
    friend class Completer;
    std::shared_ptr<Watches> watches_;
  };

  /// `device` outlives it.
  explicit Completer(device::Device& device);
  /// Requires: nothing is outstanding, or the process is about to end.
  ~Completer();

  /// How the end of a stream's work is noticed.
  enum class Notice : std::uint8_t {
    kSoon,   // by a word that the device writes: soonest; the stream loses 2 us (H200)
    kCheap,  // by asking the driver: the stream loses nothing, each question takes 0.1 us
  };
  /// Runs `callback` when all work submitted so far on `stream` is done. Any thread, also a
  /// callback. After an error `callback` is unchanged: the work goes on, and may use what the
  /// callback owns.
  Result<void> watch(Group& group, device::Stream stream, Callback&& callback,
                     Notice notice = Notice::kSoon);
  /// The same at less cost, where `event` was just recorded on `stream`. Requires: `event` is not
  /// recorded again while it is watched.
  void watch(Group& group, device::Stream stream, std::shared_ptr<SharedEvent> event,
             Callback callback);
  /// Runs `callback` when the work before the last record of `event` is done. Requires as above.
  void watch(Group& group, std::shared_ptr<SharedEvent> event, Callback callback);

  // Thread: the group's owner.
  /// Runs the callbacks of ended work; false when nothing had ended. While this is called every few
  /// microseconds the completer's thread leaves the group alone. `waits`: the caller has nothing
  /// else to do.
  bool look(Group& group, bool waits);
  /// The owner stops looking for ends; the completer's thread does from now on.
  void leave(Group& group);

  /// Events that measure time, from a pool. Any thread.
  Result<std::shared_ptr<SharedEvent>> take_timer();
  /// Requires: the work before their records has ended, or the device is lost.
  void give_back_timers(std::shared_ptr<SharedEvent> one, std::shared_ptr<SharedEvent> other);

 private:
  using Pool = std::vector<std::shared_ptr<SharedEvent>>;
  struct Item {
    std::shared_ptr<SharedEvent> event;
    Callback callback;
    Pool* pool = nullptr;  // pool that the event goes back to; null: the caller's event
  };

  Pool& pool_of(Notice notice) { return notice == Notice::kSoon ? words_ : plain_; }
  Result<std::shared_ptr<SharedEvent>> take_event(Notice notice);
  void add(const std::shared_ptr<Watches>& watches, std::uint64_t queue, Item item);
  void run(const std::stop_token& stop);
  void sleep(const std::stop_token& stop);
  bool check(Watches& watches, std::int64_t ask_every_ns);
  bool finish_if_done(Watches& watches, Item& item, bool asks);

  device::Device& device_;
  Mutex mutex_;
  std::condition_variable_any work_;  // waits with a stop token
  // Watches of the completer's thread.
  std::vector<std::shared_ptr<Watches>> listed_ SLATE_GUARDED_BY(mutex_);
  bool called_ SLATE_GUARDED_BY(mutex_) = false;  // whether the thread must look at once
  Pool words_ SLATE_GUARDED_BY(mutex_), plain_ SLATE_GUARDED_BY(mutex_),
      timers_ SLATE_GUARDED_BY(mutex_);
  std::jthread thread_;  // last, as it uses all of the above
};

}  // namespace slate::daemon
