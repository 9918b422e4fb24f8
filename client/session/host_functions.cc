#include "client/session/host_functions.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <unordered_set>

#include "base/clock.h"
#include "client/session/session.h"

namespace slate::client {
namespace {

/// Well below the engine's limit of gates.
constexpr std::size_t kMostWaiting = 4096;

/// How long to sleep before the next look: a small part of the wait so far.
std::chrono::nanoseconds pause_after(std::int64_t waited_ns) {
  return std::chrono::nanoseconds(std::clamp<std::int64_t>(waited_ns / 32, 50'000, 5'000'000));
}

/// The program's signals are for its own threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGSEGV);  // ManagedGuard waits in it
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<void> HostFunctions::call(std::uint64_t stream, HostFunction function) {
  const MutexLock lock(order_mutex_);
  wait_for_room();
  auto event = session_.events().create(ipc::kEventNoTiming);
  if (!event) return std::unexpected(event.error());
  const std::uint64_t ticket = session_.wire().next_id();
  auto sent = session_.events().record(*event, stream);
  if (sent) {
    sent =
        session_.streams().post(ipc::CommandType::kHostGate, ipc::HostGate{ticket, stream}, stream);
  }
  if (sent) sent = add({stream, *event, ticket, std::move(function)});
  if (!sent) (void)session_.events().destroy(*event);
  return sent;
}

/// The stream behind this ticket's gate goes on.
Result<void> HostFunctions::open_gate(std::uint64_t ticket) {
  return session_.wire().post(ipc::CommandType::kHostDone, ipc::IdCommand{ticket});
}

Result<void> HostFunctions::add(Item item) {
  const MutexLock lock(mutex_);
  if (stopping_) return fail(ErrorCode::kUnavailable, "the session has ended");
  if (!thread_.joinable()) {
    try {
      const AllSignalsBlocked blocked;
      thread_ = std::thread([this] { run(); });
      thread_id_ = thread_.get_id();
    } catch (const std::system_error& error) {
      (void)open_gate(item.ticket);
      return fail(ErrorCode::kOutOfMemory,
                  std::string("no thread for host functions: ") + error.what());
    }
  }
  unfinished_.fetch_add(1);
  items_.push_back(std::move(item));
  come_.notify_one();
  return {};
}

void HostFunctions::wait_for_room() {
  MutexLock lock(mutex_);
  went_.wait(lock, [this]() SLATE_REQUIRES(mutex_) { return items_.size() < kMostWaiting; });
}

void HostFunctions::run() {
  Item item;
  Result<void> outcome;
  while (next(item, outcome)) {
    item.function(outcome);
    item.function = nullptr;
    session_.host_memory().guard().host_function_ended();
    // Nobody is left to tell when these fail: the session has ended.
    (void)open_gate(item.ticket);
    (void)session_.events().destroy(item.event);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

/// Waits for the turn of an item and takes it; false when none is left and none will come.
bool HostFunctions::next(Item& item, Result<void>& outcome) {
  MutexLock lock(mutex_);
  come_.wait(lock, [this]() SLATE_REQUIRES(mutex_) { return stopping_ || !items_.empty(); });
  const std::int64_t start = now_ns();
  for (bool awake = true; !items_.empty(); awake = false) {
    const auto first = first_of_each_stream();
    const std::uint64_t known = unfinished_.load();
    // Nobody else takes items out: what is pointed to stays without the lock.
    lock.unlock();
    std::optional<Items::iterator> turn;
    const auto look_once = [&] {
      turn = look(first, outcome);
      return turn || unfinished_.load() != known;
    };
    if (awake) {
      session_.wire().channel().spin_until(look_once);
    } else {
      look_once();
    }
    lock.lock();
    if (turn) {
      item = std::move(**turn);
      items_.erase(*turn);
      went_.notify_all();
      return true;
    }
    // A thread that the daemon would wake at one event would not see the others.
    come_.wait_for(lock, pause_after(now_ns() - start));
  }
  return false;
}

/// In the order in which they were added: a later one of a stream has its turn after the first.
std::vector<HostFunctions::Items::iterator> HostFunctions::first_of_each_stream() {
  std::vector<Items::iterator> first;
  std::unordered_set<std::uint64_t> streams;
  for (auto item = items_.begin(); item != items_.end(); ++item) {
    if (streams.insert(item->stream).second) first.push_back(item);
  }
  return first;
}

/// The first of these whose event is reached, or that the session's end has come to.
std::optional<HostFunctions::Items::iterator> HostFunctions::look(
    const std::vector<Items::iterator>& first, Result<void>& outcome) {
  for (const auto item : first) {
    const auto reached = session_.waiting().reached(item->event);
    if (reached && !*reached) continue;
    outcome = reached ? Result<void>() : std::unexpected(reached.error());
    return item;
  }
  return std::nullopt;
}

bool HostFunctions::is_own_thread() const {
  const MutexLock lock(mutex_);
  return thread_id_ == std::this_thread::get_id();
}

void HostFunctions::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  come_.notify_one();
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mutex_);
  thread_id_ = {};  // another thread may get the number
}

}  // namespace slate::client
