// Completer: sees device work finish and runs what was waiting for it. Each session's thread looks
// for the ends of its own work while it is awake anyway, which is the quickest way; for those that
// sleep, or are busy, the completer's thread looks. It sleeps while nothing is outstanding.
//
// Callbacks run on one of these threads, those of one group one at a time, and must not block. A
// callback gets the fault of the work when it did not end well; every callback runs exactly once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
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
  struct Watches;

 public:
  using Callback = std::function<void(const Result<void>& outcome)>;

  /// What one owner, a session, still has to expect.
  class Group {
   public:
    Group();
    bool empty() const;
    /// Watches whose callback has not run.
    std::uint64_t outstanding() const;
    /// Has `fewer` called each time that fewer than `few` are outstanding again, by whoever sees
    /// it. Before the first watch. Requires: few > 1.
    void tell(std::uint64_t few, std::function<void()> fewer);
    /// Waits until nothing is outstanding; false when `timeout` passed first.
    bool wait_empty(std::chrono::milliseconds timeout);

   private:
    friend class Completer;
    std::shared_ptr<Watches> watches_;
  };

  /// `device` outlives it.
  explicit Completer(device::Device& device);
  /// Requires: nothing is outstanding any more, or the process is about to end.
  ~Completer();

  /// How the end of a stream's work is noticed.
  enum class Notice : std::uint8_t {
    kSoon,   // by a word that the device writes: for who waits. The stream loses 2 us (H200).
    kCheap,  // by asking the driver: the stream loses nothing, who looks 0.1 us each time
  };
  /// Runs `callback` when all work submitted so far on `stream` is done. Any thread, also a
  /// callback. An error leaves `callback` as it is: the work goes on, and may use what that owns.
  Result<void> watch(Group& group, device::Stream stream, Callback&& callback,
                     Notice notice = Notice::kSoon);
  /// The same, cheaply, where `event` was just recorded there anyway. It must not be recorded again
  /// while it is watched.
  void watch(Group& group, device::Stream stream, std::shared_ptr<SharedEvent> event,
             Callback callback);
  /// Runs `callback` when the work before the last record of `event` is done. `event` must not be
  /// recorded again while it is watched.
  void watch(Group& group, std::shared_ptr<SharedEvent> event, Callback callback);

  // On the thread of the group's owner, which may look itself.
  /// Runs the callbacks of what has ended; false when nothing had. While this is called every few
  /// microseconds the completer's thread leaves the group alone.
  /// `waits`: it has nothing else to do.
  bool look(Group& group, bool waits);
  /// It looks no more: the completer's thread does.
  void leave(Group& group);

  /// Events that tell the time, kept for those who need many. Any thread.
  Result<std::shared_ptr<SharedEvent>> take_timer();
  /// Requires: what was recorded with them has ended, or the device is lost.
  void give_back_timers(std::shared_ptr<SharedEvent> one, std::shared_ptr<SharedEvent> other);

 private:
  using Pool = std::vector<std::shared_ptr<SharedEvent>>;
  struct Item {
    std::shared_ptr<SharedEvent> event;
    Callback callback;
    Pool* pool = nullptr;  // where the event goes when it is done; null: it is not ours
  };

  Pool& pool_of(Notice notice) { return notice == Notice::kSoon ? words_ : plain_; }
  Result<std::shared_ptr<SharedEvent>> take_event(Notice notice);
  void add(const std::shared_ptr<Watches>& watches, std::uint64_t queue, Item item);
  void run(const std::stop_token& stop);
  void sleep(const std::stop_token& stop);
  bool check(Watches& watches, std::int64_t ask_every_ns);
  bool finish_if_done(Watches& watches, Item& item, bool asks);

  device::Device& device_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any work_;
  std::vector<std::shared_ptr<Watches>> listed_;  // what the thread looks after
  bool called_ = false;                           // it is to look at once
  Pool words_, plain_, timers_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace slate::daemon
