#include "client/session/process.h"

#include <pthread.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "client/session/say.h"
#include "ipc/meeting.h"

namespace slate::client {
namespace {

constexpr std::chrono::seconds kUsual{5};  // a longer wait is said

/// An engine that starts beside several others took 12 s (H200). Without a daemon there is no wait.
std::chrono::milliseconds connect_timeout() {
  constexpr int kDefaultMs = 60'000;
  int value = kDefaultMs;
  if (const char* text = std::getenv("SLATE_CONNECT_TIMEOUT_MS")) {
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value < 0) {
      say_once("SLATE_CONNECT_TIMEOUT_MS is not a number of milliseconds and is ignored");
      value = kDefaultMs;
    }
  }
  return std::chrono::milliseconds(value);
}

void print_at_exit() {
  Session* session = Process::get().current();
  if (session == nullptr) return;
  session->printing().write();
  (void)session->check();  // says what no call has asked for
}

}  // namespace

Process& Process::get() {
  static Process* const instance = new Process;
  return *instance;
}

Process::Process() {
  ::pthread_atfork(&Process::before_fork, &Process::after_fork_in_parent,
                   &Process::after_fork_in_child);
}

Result<Session*> Process::connect() {
  MutexLock lock(mutex_);
  if (Session* known = session_.load(std::memory_order_acquire)) return known;
  if (refusal_) return std::unexpected(*refusal_);
  const ipc::Patience patience(connect_timeout(), kUsual, [] {
    say("slated has not answered for " + std::to_string(kUsual.count()) +
        " s: its engine may be starting. This program waits on.");
  });
  auto made = Session::open(ipc::runtime_directory(), patience, sessions_made_ + 1);
  if (!made) {
    refusal_ = made.error();
    // Whatever kept us from a session, to the program CUDA did not initialise.
    if (refusal_->code != ErrorCode::kOutOfMemory) refusal_->code = ErrorCode::kInitialization;
    return std::unexpected(*refusal_);
  }
  if (sessions_made_++ == 0) std::atexit(print_at_exit);
  owned_ = std::move(*made);
  session_.store(owned_.get(), std::memory_order_release);
  return owned_.get();
}

void Process::reset() {
  // Destroyed without the lock: its captures' graphs have locks that fork() takes before ours.
  std::unique_ptr<Session> ended_earlier;
  MutexLock lock(mutex_);
  refusal_.reset();
  if (!owned_) return;
  session_.store(nullptr, std::memory_order_release);
  code_.detach_managed(owned_.get());
  owned_->abandon();
  owned_->host_memory().blocks().make_private();
  pinned_.erase_all(kTagRegistered);
  ended_earlier = std::exchange(ended_, std::move(owned_));
}

void Process::before_fork() {
  get().mutex_.lock();
  get().code_.lock_for_fork();
  get().pinned_.lock_for_fork();
  get().tables_mutex_.lock();
  if (get().owned_) get().owned_->host_memory().blocks().lock_for_fork();
}

void Process::after_fork_in_parent() {
  if (get().owned_) get().owned_->host_memory().blocks().unlock_in_parent();
  get().tables_mutex_.unlock();
  get().pinned_.unlock_after_fork(false);
  get().code_.unlock_after_fork(false);
  get().mutex_.unlock();
}

void Process::after_fork_in_child() {
  Process& process = get();
  if (process.owned_) {
    process.session_.store(nullptr, std::memory_order_release);
    process.owned_->host_memory().blocks().make_private_in_child();
    process.owned_->wire().channel().abandon();
    // Not destroyed: a thread that does not exist here may have held its locks.
    [[maybe_unused]] const Session* left = process.owned_.release();
  }
  process.tables_mutex_.unlock();
  process.pinned_.unlock_after_fork(true);
  // That memory is the child's own now, as make_private_in_child() left it.
  process.pinned_.erase_all(kTagRegistered);
  // And this the child does not have: something else may be there soon.
  process.pinned_.erase_all(kTagShared);
  process.pinned_.erase_all(kTagPiece);
  process.code_.unlock_after_fork(true);
  process.mutex_.unlock();
}

Allowed<Kernel*> kernel_of(const void* function) {
  if (function == nullptr) return refuse(Refusal::kInvalidFunction);
  Kernel* kernel = Process::get().code().find_kernel(function);
  if (kernel == nullptr) return refuse(Refusal::kInvalidHandle);
  return kernel;
}

Allowed<Function*> function_of(Session& session, const void* function) {
  const auto kernel = kernel_of(function);
  if (!kernel) return std::unexpected(kernel.error());
  auto loaded = Process::get().code().function(session, **kernel);
  if (loaded) return *loaded;
  if (loaded.error().code == ErrorCode::kSymbolNotFound) {
    say_once(loaded.error().message);
    return refuse(Refusal::kInvalidFunction);
  }
  return std::unexpected<Refused>(std::move(loaded.error()));
}

}  // namespace slate::client
