#include "daemon/engine/completer.h"

#include <chrono>
#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/spin.h"

namespace slate::daemon {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kLooseQueue = 0;  // streams are never 0
constexpr std::size_t kMostIdleQueues = 8;
constexpr microseconds kShortestWait{50};
constexpr microseconds kLongestWait{200};
// An owner that has not looked for this time is busy or asleep: the completer's thread looks.
constexpr std::int64_t kOwnerLooksNs = 50'000;
constexpr microseconds kNap{100};  // while all owners look themselves
// Asking costs the owner time for launches, and locks that others' launches need.
constexpr std::int64_t kAskEveryNs = 2'000, kAskBusyEveryNs = 20'000;
// Kept on the list when there is nothing to look for, so that the next watch need not call anybody.
constexpr std::int64_t kListedNs = 5'000'000;

}  // namespace

/// A group's watches. The group may go while the completer's thread still knows them.
struct Completer::Watches {
  void leave() {
    SLATE_CHECK(outstanding.load() > 0);
    const std::uint64_t before = outstanding.fetch_sub(1);
    if (before == few) fewer();
    if (before > 1) return;
    // Under the lock: a waiter that has just looked would miss it.
    const MutexLock lock = lock_soon(mutex);
    empty.notify_all();
  }
  void accept_incoming() SLATE_REQUIRES(looking) {
    if (!has_incoming.load(std::memory_order_acquire)) return;
    std::vector<std::pair<std::uint64_t, Item>> fresh;
    {
      const MutexLock lock = lock_soon(mutex);
      fresh.swap(incoming);
      has_incoming.store(false, std::memory_order_relaxed);
    }
    for (auto& [queue, item] : fresh) {
      if (queue == kLooseQueue) {
        loose.push_back(std::move(item));
      } else {
        queues[queue].push_back(std::move(item));
      }
    }
  }
  bool owner_looks(std::int64_t now) const { return now - looked_ns.load() < kOwnerLooksNs; }

  Mutex mutex;
  CondVar empty;
  std::vector<std::pair<std::uint64_t, Item>> incoming SLATE_GUARDED_BY(mutex);
  std::atomic<bool> has_incoming{false};  // written under the mutex
  std::atomic<std::uint64_t> outstanding{0};
  std::uint64_t few = 0;  // 0: nobody wants to know
  std::function<void()> fewer;
  std::atomic<std::int64_t> looked_ns{0};  // when the owner last did; 0: it does not
  std::atomic<bool> listed{false};         // written under the completer's mutex
  std::int64_t used_ns = 0;                // completer's thread only: last time with anything

  std::atomic<std::uint32_t> words{0};    // outstanding ones that a word tells of
  std::atomic<std::int64_t> asked_ns{0};  // when the driver was asked; written under `looking`

  Mutex looking;  // held by the thread that looks
  // By stream, in the order of recording, so that only heads need a look.
  std::unordered_map<std::uint64_t, std::deque<Item>> queues SLATE_GUARDED_BY(looking);
  std::vector<Item> loose SLATE_GUARDED_BY(looking);
};

Result<std::shared_ptr<SharedEvent>> SharedEvent::make(device::Device& device, bool timing) {
  const auto event = device.create_event(timing);
  if (!event) return std::unexpected(event.error());
  return std::make_shared<SharedEvent>(device, *event);
}

Completer::Group::Group() : watches_(std::make_shared<Watches>()) {}

bool Completer::Group::empty() const {
  return watches_->outstanding.load() == 0;
}

std::uint64_t Completer::Group::outstanding() const {
  return watches_->outstanding.load(std::memory_order_relaxed);
}

void Completer::Group::tell(std::uint64_t few, std::function<void()> fewer) {
  SLATE_CHECK(few > 1 && empty());
  watches_->few = few;
  watches_->fewer = std::move(fewer);
}

bool Completer::Group::wait_empty(std::chrono::milliseconds timeout) {
  watches_->looked_ns.store(0);
  MutexLock lock(watches_->mutex);
  return watches_->empty.wait_for(lock, timeout, [&] { return watches_->outstanding.load() == 0; });
}

Completer::Completer(device::Device& device)
    : device_(device), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Completer::~Completer() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<SharedEvent>> Completer::take_event(Notice notice) {
  {
    const MutexLock lock = lock_soon(mutex_);
    Pool& pool = pool_of(notice);
    if (!pool.empty()) {
      auto event = std::move(pool.back());
      pool.pop_back();
      return event;
    }
  }
  if (notice == Notice::kCheap) return SharedEvent::make(device_, false);
  const auto event = device_.create_watched_event();
  if (!event) return std::unexpected(event.error());
  return std::make_shared<SharedEvent>(device_, *event);
}

Result<void> Completer::watch(Group& group, device::Stream stream, Callback&& callback,
                              Notice notice) {
  auto event = take_event(notice);
  if (!event) return std::unexpected(event.error());
  if (const auto recorded = device_.record((*event)->get(), stream); !recorded) return recorded;
  add(group.watches_, static_cast<std::uint64_t>(stream),
      Item{std::move(*event), std::move(callback), &pool_of(notice)});
  return {};
}

void Completer::watch(Group& group, device::Stream stream, std::shared_ptr<SharedEvent> event,
                      Callback callback) {
  add(group.watches_, static_cast<std::uint64_t>(stream),
      Item{.event = std::move(event), .callback = std::move(callback)});
}

void Completer::watch(Group& group, std::shared_ptr<SharedEvent> event, Callback callback) {
  add(group.watches_, kLooseQueue,
      Item{.event = std::move(event), .callback = std::move(callback)});
}

Result<std::shared_ptr<SharedEvent>> Completer::take_timer() {
  {
    const MutexLock lock = lock_soon(mutex_);
    if (!timers_.empty()) {
      auto event = std::move(timers_.back());
      timers_.pop_back();
      return event;
    }
  }
  return SharedEvent::make(device_, true);
}

void Completer::give_back_timers(std::shared_ptr<SharedEvent> one,
                                 std::shared_ptr<SharedEvent> other) {
  const MutexLock lock = lock_soon(mutex_);
  if (one) timers_.push_back(std::move(one));
  if (other) timers_.push_back(std::move(other));
}

void Completer::add(const std::shared_ptr<Watches>& watches, std::uint64_t queue, Item item) {
  watches->outstanding.fetch_add(1);
  if (item.pool == &words_) watches->words.fetch_add(1);
  {
    const MutexLock lock = lock_soon(watches->mutex);
    watches->incoming.emplace_back(queue, std::move(item));
    watches->has_incoming.store(true, std::memory_order_release);
  }
  if (watches->listed.load() && watches->owner_looks(now_ns())) return;
  {
    const MutexLock lock = lock_soon(mutex_);
    if (!watches->listed.exchange(true)) listed_.push_back(watches);
    called_ = true;
  }
  work_.notify_one();
}

bool Completer::look(Group& group, bool waits) {
  Watches& watches = *group.watches_;
  const std::int64_t now = now_ns();
  watches.looked_ns.store(now, std::memory_order_relaxed);
  if (watches.outstanding.load() == 0) return false;
  if (waits) return check(watches, kAskEveryNs);
  // This is called between any two commands.
  const bool due = watches.words.load() > 0 || now - watches.asked_ns.load() >= kAskBusyEveryNs;
  return due && check(watches, kAskBusyEveryNs);
}

void Completer::leave(Group& group) {
  Watches& watches = *group.watches_;
  watches.looked_ns.store(0);
  if (watches.outstanding.load() == 0) return;
  {
    const MutexLock lock = lock_soon(mutex_);
    called_ = true;
  }
  work_.notify_one();
}

void Completer::run(const std::stop_token& stop) {
  microseconds wait = kShortestWait;
  std::vector<std::shared_ptr<Watches>> groups;
  while (!stop.stop_requested()) {
    {
      const MutexLock lock = lock_soon(mutex_);
      groups = listed_;
      called_ = false;
    }
    bool progress = false, busy = false;
    for (const auto& watches : groups) {
      const std::int64_t now = now_ns();
      if (watches->outstanding.load() > 0 || watches->owner_looks(now)) watches->used_ns = now;
      if (watches->outstanding.load() == 0 || watches->owner_looks(now)) continue;
      busy = true;
      if (check(*watches, kAskEveryNs)) progress = true;
    }
    if (progress) {
      wait = kShortestWait;
    } else if (busy) {
      device_.wait_for_progress(wait);
      wait = std::min(2 * wait, kLongestWait);
    } else {
      sleep(stop);
    }
  }
}

/// Until there may be something to look for.
void Completer::sleep(const std::stop_token& stop) {
  const std::int64_t now = now_ns();
  MutexLock lock(mutex_);
  std::erase_if(listed_, [now](const std::shared_ptr<Watches>& watches) {
    if (now - watches->used_ns < kListedNs) return false;
    watches->listed.store(false);
    if (watches->outstanding.load() == 0) return true;
    watches->listed.store(true);  // added just now by a thread that saw it listed
    return false;
  });
  const auto called = [this]() SLATE_REQUIRES(mutex_) { return called_; };
  if (listed_.empty()) {
    work_.wait(lock, stop, called);
  } else {
    work_.wait_for(lock, stop, kNap, called);
  }
}

/// Runs the callbacks of ended work, unless another thread does; false when nothing had ended.
bool Completer::check(Watches& watches, std::int64_t ask_every_ns) {
  if (!watches.looking.try_lock()) return false;
  const MutexLock looking(watches.looking, std::adopt_lock);
  watches.accept_incoming();
  const std::int64_t now = now_ns();
  const bool asks = now - watches.asked_ns.load() >= ask_every_ns;
  if (asks) watches.asked_ns.store(now);
  bool progress = false;
  for (auto entry = watches.queues.begin(); entry != watches.queues.end();) {
    std::deque<Item>& queue = entry->second;
    while (!queue.empty() && finish_if_done(watches, queue.front(), asks)) {
      queue.pop_front();
      progress = true;
    }
    entry = queue.empty() && watches.queues.size() > kMostIdleQueues ? watches.queues.erase(entry)
                                                                     : std::next(entry);
  }
  const auto finished =
      std::erase_if(watches.loose, [&](Item& item) { return finish_if_done(watches, item, asks); });
  return progress || finished > 0;
}

/// `asks`: the driver may be asked, for what is not told by a word.
bool Completer::finish_if_done(Watches& watches, Item& item, bool asks) {
  if (!asks && item.pool != &words_) return false;
  const auto done = device_.query(item.event->get());
  if (done && !*done) return false;
  Result<void> outcome;
  if (!done) outcome = std::unexpected(done.error());
  if (item.pool == &words_) watches.words.fetch_sub(1);
  item.callback(outcome);
  item.callback = nullptr;
  if (item.pool != nullptr && done) {
    const MutexLock lock = lock_soon(mutex_);
    item.pool->push_back(std::move(item.event));
  }
  item.event.reset();
  watches.leave();
  return true;
}

}  // namespace slate::daemon
