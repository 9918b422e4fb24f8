#include "client/session/host_functions.h"

#include <csignal>
#include <system_error>

#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {
namespace {

/// Well below the engine's limit of gates.
constexpr std::size_t kMostWaiting = 4096;

/// The program's signals are for its own threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<void> HostFunctions::add(std::uint64_t event, std::uint64_t ticket, HostFunction function) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return fail(ErrorCode::kUnavailable, "the session has ended");
  if (!thread_.joinable()) {
    try {
      const AllSignalsBlocked blocked;
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      (void)session_.host_done(ticket);
      return fail(ErrorCode::kOutOfMemory,
                  std::string("no thread for host functions: ") + error.what());
    }
  }
  unfinished_.fetch_add(1);
  items_.push_back({event, ticket, std::move(function)});
  come_.notify_one();
  return {};
}

void HostFunctions::wait_for_room() {
  std::unique_lock lock(mutex_);
  went_.wait(lock, [this] { return items_.size() < kMostWaiting; });
}

void HostFunctions::run() {
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      come_.wait(lock, [this] { return stopping_ || !items_.empty(); });
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
      went_.notify_all();
    }
    // Not the session's own wait: the error of another call is the program's to take.
    const auto reached = session_.wait_for_event(item.event);
    item.function(reached);
    // Nobody is left to tell when these fail: the session has ended.
    (void)session_.host_done(item.ticket);
    (void)session_.destroy_event(item.event);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

bool HostFunctions::is_own_thread() const {
  const std::lock_guard lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

void HostFunctions::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  come_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace slate::client
