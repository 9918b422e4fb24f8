#include "daemon/engine/completer.h"

#include <chrono>

#include "base/check.h"
#include "base/clock.h"
#include "base/spin.h"

namespace slate::daemon {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kLooseQueue = 0;    // streams are never 0
constexpr std::int64_t kExpectNs = 50'000;  // a program's turn between two short kernels
constexpr microseconds kShortestWait{50};
constexpr microseconds kLongestWait{200};

}  // namespace

Result<std::shared_ptr<SharedEvent>> SharedEvent::make(device::Device& device, bool timing) {
  const auto event = device.create_event(timing);
  if (!event) return std::unexpected(event.error());
  return std::make_shared<SharedEvent>(device, *event);
}

bool Completer::Group::wait_empty(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, timeout, [&] { return outstanding_ == 0; });
}

void Completer::Group::enter() {
  const std::lock_guard lock(mutex_);
  ++outstanding_;
}

void Completer::Group::leave() {
  // Notified under the lock: the waiter may destroy the group as soon as it sees zero.
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(outstanding_ > 0);
  if (--outstanding_ == 0) empty_.notify_all();
}

Completer::Completer(device::Device& device)
    : device_(device), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Completer::~Completer() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Result<std::shared_ptr<SharedEvent>> Completer::take_event() {
  {
    const auto lock = lock_soon(mutex_);
    if (!pool_.empty()) {
      auto event = std::move(pool_.back());
      pool_.pop_back();
      return event;
    }
  }
  const auto event = device_.create_watched_event();
  if (!event) return std::unexpected(event.error());
  return std::make_shared<SharedEvent>(device_, *event);
}

Result<void> Completer::watch(Group& group, device::Stream stream, Callback callback) {
  auto event = take_event();
  if (!event) return std::unexpected(event.error());
  if (const auto recorded = device_.record((*event)->get(), stream); !recorded) return recorded;
  group.enter();
  add(static_cast<std::uint64_t>(stream),
      Item{&group, std::move(*event), std::move(callback), true});
  return {};
}

void Completer::watch(Group& group, std::shared_ptr<SharedEvent> event, Callback callback) {
  group.enter();
  add(kLooseQueue, Item{&group, std::move(event), std::move(callback), false});
}

Result<std::shared_ptr<SharedEvent>> Completer::take_timer() {
  {
    const auto lock = lock_soon(mutex_);
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
  const auto lock = lock_soon(mutex_);
  if (one) timers_.push_back(std::move(one));
  if (other) timers_.push_back(std::move(other));
}

void Completer::add(std::uint64_t queue, Item item) {
  {
    const auto lock = lock_soon(mutex_);
    incoming_.emplace_back(queue, std::move(item));
    has_incoming_.store(true, std::memory_order_release);
  }
  work_.notify_one();
}

void Completer::run(const std::stop_token& stop) {
  microseconds wait = kShortestWait;
  while (!stop.stop_requested()) {
    if (queues_.empty() && loose_.empty() && !expect_work()) {
      std::unique_lock lock(mutex_);
      work_.wait(lock, stop, [&] { return !incoming_.empty(); });
    }
    accept_incoming();
    if (check_all()) {
      wait = kShortestWait;
    } else if (!queues_.empty() || !loose_.empty()) {
      device_.wait_for_progress(wait);
      wait = std::min(2 * wait, kLongestWait);
    }
  }
}

/// Watches for work for a while; false when none has come.
bool Completer::expect_work() const {
  if (!may_spin()) return false;
  const std::int64_t end = now_ns() + kExpectNs;
  while (!has_incoming_.load(std::memory_order_acquire)) {
    if (now_ns() > end) return false;
    for (int i = 0; i < 32; ++i) __builtin_ia32_pause();
  }
  return true;
}

void Completer::accept_incoming() {
  if (!has_incoming_.load(std::memory_order_acquire)) return;
  std::vector<std::pair<std::uint64_t, Item>> fresh;
  {
    const auto lock = lock_soon(mutex_);
    fresh.swap(incoming_);
    has_incoming_.store(false, std::memory_order_relaxed);
  }
  for (auto& [queue, item] : fresh) {
    if (queue == kLooseQueue) {
      loose_.push_back(std::move(item));
    } else {
      queues_[queue].push_back(std::move(item));
    }
  }
}

bool Completer::check_all() {
  const bool streams = check_streams();
  return check_loose() || streams;
}

bool Completer::check_streams() {
  bool progress = false;
  for (auto entry = queues_.begin(); entry != queues_.end();) {
    Queue& queue = entry->second;
    while (!queue.empty() && finish_if_done(queue.front())) {
      queue.pop_front();
      progress = true;
    }
    entry = queue.empty() ? queues_.erase(entry) : std::next(entry);
  }
  return progress;
}

bool Completer::check_loose() {
  return std::erase_if(loose_, [this](Item& item) { return finish_if_done(item); }) > 0;
}

bool Completer::finish_if_done(Item& item) {
  const auto done = device_.query(item.event->get());
  if (done && !*done) return false;
  Result<void> outcome;
  if (!done) outcome = std::unexpected(done.error());
  item.callback(outcome);
  item.callback = nullptr;
  if (item.pooled && done) {
    const auto lock = lock_soon(mutex_);
    pool_.push_back(std::move(item.event));
  }
  item.event.reset();
  item.group->leave();
  return true;
}

}  // namespace slate::daemon
