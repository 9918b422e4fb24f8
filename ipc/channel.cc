#include "ipc/channel.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/spin.h"

namespace slate::ipc {
namespace {

constexpr std::int64_t kSpinNs = 20'000;  // twice a FIFO round trip: past that, sleeping is as good
// A program that waits for short kernels and copies has nothing better to do, as natively. It lets
// others have the core meanwhile.
constexpr std::int64_t kYieldNs = 200'000;
// As long as the other side is awake too. Of what takes longer, waking up is less than a hundredth.
constexpr std::int64_t kAwakeNs = 10'000'000;
constexpr std::int64_t kLookEveryNs = 100'000'000;
constexpr int kSleepLimitMs = 1000;  // a lost wake-up costs this, not a hang

/// To a few milliseconds, for a fifth of the cost: every call of the program asks.
std::int64_t coarse_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

template <typename Ready>
bool spin(const Ready& ready) {
  if (ready()) return true;
  if (!may_spin()) return false;
  const std::int64_t end = now_ns() + kSpinNs;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
  } while (now_ns() < end);
  return ready();
}

/// One byte into a FIFO whose reader may be gone, without a SIGPIPE for the process that hosts us.
/// A full FIFO is as good: the reader has plenty to wake up for.
void write_byte(int fd, char byte) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t n;
  do {
    n = ::write(fd, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EPIPE && !was_pending) {
    const timespec now{0, 0};
    while (sigtimedwait(&pipe_signal, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void wake(std::atomic<std::uint32_t>& sleeps, int fd) {
  if (sleeps.load(std::memory_order_seq_cst) != 0 && sleeps.exchange(0) != 0)
    write_byte(fd, kWakeByte);
}

}  // namespace

// --- ClientChannel -------------------------------------------------------------------------------

Result<std::unique_ptr<ClientChannel>> ClientChannel::connect(const std::string& runtime_dir,
                                                              std::chrono::milliseconds timeout,
                                                              const Wishes& wishes) {
  auto connection = connect_to_daemon(runtime_dir, HelloKind::kSession, timeout, wishes);
  if (!connection) return std::unexpected(connection.error());
  auto segment = Segment::open(connection->welcome.segment, connection->welcome.segment_bytes);
  if (!segment) return std::unexpected(segment.error());
  write_byte(connection->to_daemon.get(), kReadyByte);
  return std::make_unique<ClientChannel>(std::move(*connection), std::move(*segment));
}

ClientChannel::ClientChannel(Connection connection, Segment segment)
    : connection_(std::move(connection)),
      segment_(std::move(segment)),
      producer_(segment_.operator->()),
      last_look_ns_(coarse_now_ns()) {}

Result<void> ClientChannel::session_error() const {
  const StatusPage& page = status();
  if (static_cast<SessionState>(page.state.load(std::memory_order_acquire)) ==
      SessionState::kServing) {
    if (gone_.load(std::memory_order_relaxed))
      return fail(ErrorCode::kUnavailable, "slated is gone");
    return {};
  }
  return fail(static_cast<ErrorCode>(page.error.load(std::memory_order_relaxed)),
              std::string(page.error_text, ::strnlen(page.error_text, sizeof(page.error_text))));
}

void ClientChannel::read_wake_bytes(int timeout_ms) {
  pollfd poller{connection_.from_daemon.get(), POLLIN, 0};
  const int ready = ::poll(&poller, 1, timeout_ms);
  if (ready <= 0) return;
  std::array<char, 256> bytes;
  const ssize_t n = ::read(connection_.from_daemon.get(), bytes.data(), bytes.size());
  if (n == 0) gone_.store(true, std::memory_order_relaxed);
}

void ClientChannel::sleep_once(const std::function<bool()>& ready) {
  std::unique_lock lock(sleep_mutex_);
  // The flag is raised and the condition looked at under the mutex, so that what another waiter
  // misses while this thread reads the FIFO still rings for it.
  segment_->status.client_sleeps.store(1, std::memory_order_seq_cst);
  if (ready() || !session_error()) return;
  if (reader_present_) {
    woken_.wait(lock);
    return;
  }
  reader_present_ = true;
  lock.unlock();
  read_wake_bytes(kSleepLimitMs);
  lock.lock();
  reader_present_ = false;
  woken_.notify_all();
}

Result<void> ClientChannel::wait_until(const std::function<bool()>& ready) {
  if (spin_until(ready)) return {};
  while (true) {
    if (ready()) return {};
    if (auto ok = session_error(); !ok) return ok;
    sleep_once(ready);
  }
}

Result<void> ClientChannel::push(CommandType type, std::uint16_t slot, std::uint32_t sequence,
                                 std::span<const std::byte> body, std::span<const std::byte> tail,
                                 std::uint64_t* position) {
  if (sizeof(CommandHeader) + body.size() + tail.size() > kMaxCommandBytes)
    return fail(ErrorCode::kInvalidValue, "a command is longer than the protocol allows");
  std::lock_guard lock(push_mutex_);
  if (auto ok = check(); !ok) return ok;
  if (!producer_.try_push(type, slot, sequence, body, tail)) {
    // The wait may ask again after a yes: the command must not be pushed twice.
    bool pushed = false;
    auto ok = wait_until([&] {
      segment_->status.client_wants_room.store(1, std::memory_order_seq_cst);
      return pushed || (pushed = producer_.try_push(type, slot, sequence, body, tail));
    });
    segment_->status.client_wants_room.store(0, std::memory_order_relaxed);
    if (!ok) return ok;
  }
  if (position != nullptr) *position = producer_.position();
  wake(segment_->status.engine_sleeps, connection_.to_daemon.get());
  return {};
}

Result<void> ClientChannel::post(CommandType type, std::span<const std::byte> body,
                                 std::span<const std::byte> tail, std::uint64_t* position) {
  return push(type, kNoReply, 0, body, tail, position);
}

bool ClientChannel::spin_until(const std::function<bool()>& ready) const {
  if (spin(ready)) return true;
  if (!may_spin()) return false;
  const std::int64_t start = now_ns();
  std::int64_t waited = 0;
  do {
    ::sched_yield();
    if (ready()) return true;
    waited = now_ns() - start;
  } while (waited < kYieldNs ||
           (waited < kAwakeNs && status().engine_sleeps.load(std::memory_order_relaxed) == 0));
  return false;
}

Result<std::uint16_t> ClientChannel::take_reply_slot() {
  std::unique_lock lock(slots_mutex_);
  while (true) {
    for (std::uint16_t i = 0; i < kReplySlots; ++i) {
      if (replies_[i].busy) continue;
      replies_[i].busy = true;
      // 0 is what a fresh slot says, so no command is ever number 0.
      if (++replies_[i].sequence == 0) replies_[i].sequence = 1;
      return i;
    }
    if (auto ok = session_error(); !ok) return std::unexpected(ok.error());
    slots_freed_.wait_for(lock, std::chrono::milliseconds(kSleepLimitMs));
  }
}

void ClientChannel::give_back_reply_slot(std::uint16_t slot) {
  {
    std::lock_guard lock(slots_mutex_);
    replies_[slot].busy = false;
  }
  slots_freed_.notify_all();
}

Result<void> ClientChannel::call(CommandType type, std::span<const std::byte> body,
                                 std::span<const std::byte> tail, std::span<std::byte> reply,
                                 std::size_t* shorter) {
  auto slot = take_reply_slot();
  if (!slot) return std::unexpected(slot.error());
  const std::uint32_t sequence =
      replies_[*slot].sequence;  // this thread's until it gives the slot back
  ReplySlot& answer = segment_->status.replies[*slot];
  Result<void> result = push(type, *slot, sequence, body, tail, nullptr);
  if (result) {
    result = wait_until([&] { return answer.done.load(std::memory_order_seq_cst) == sequence; });
  }
  if (result) {
    const std::size_t bytes = std::min<std::size_t>(answer.bytes, kReplyPayloadBytes);
    if (answer.status != 0) {
      result = fail(static_cast<ErrorCode>(answer.status),
                    std::string(reinterpret_cast<const char*>(answer.payload), bytes));
    } else if (bytes > reply.size() || (bytes < reply.size() && !shorter)) {
      result = fail(ErrorCode::kProtocol, "a reply has the wrong length");
    } else {
      if (bytes > 0) std::memcpy(reply.data(), answer.payload, bytes);
      if (shorter) *shorter = bytes;
    }
  }
  give_back_reply_slot(*slot);
  return result;
}

std::uint32_t ClientChannel::staging_slots() const {
  return std::clamp(status().staging_granted.load(std::memory_order_relaxed), 1u, kStagingSlots);
}

/// Counts one slot more as held; false while the engine takes the memory of the slots back.
bool ClientChannel::try_hold_staging_memory() {
  StatusPage& page = segment_->status;
  page.staging_held.fetch_add(1, std::memory_order_seq_cst);
  if (page.staging_reclaimed.load(std::memory_order_seq_cst) == 0) return true;
  page.staging_held.fetch_sub(1, std::memory_order_seq_cst);
  return false;
}

/// A slot that nobody holds: the first whose last copy is over, so that few slots are touched by
/// small copies; else, unless it has to be `finished`, the one used longest ago. kStagingSlots:
/// none. Requires: slots_mutex_ is held.
std::uint32_t ClientChannel::pick_staging(bool finished) const {
  const std::uint32_t granted = staging_slots();
  std::uint32_t oldest = kStagingSlots;
  for (std::uint32_t i = 0; i < granted; ++i) {
    if (staging_[i].busy) continue;
    if (status().staging[i].done.load(std::memory_order_seq_cst) >= staging_[i].sequence) return i;
    if (oldest == kStagingSlots || staging_[i].turn < staging_[oldest].turn) oldest = i;
  }
  return finished ? kStagingSlots : oldest;
}

Result<ClientChannel::Staging> ClientChannel::acquire_staging() {
  while (!try_hold_staging_memory()) {
    auto ok =
        wait_until([&] { return status().staging_reclaimed.load(std::memory_order_seq_cst) == 0; });
    if (!ok) return std::unexpected(ok.error());
  }
  std::uint32_t chosen = kStagingSlots;
  std::uint64_t last = 0;
  {
    std::unique_lock lock(slots_mutex_);
    while ((chosen = pick_staging(false)) == kStagingSlots) {
      if (auto ok = session_error(); !ok) {
        segment_->status.staging_held.fetch_sub(1, std::memory_order_seq_cst);
        return std::unexpected(ok.error());
      }
      slots_freed_.wait_for(lock, std::chrono::milliseconds(kSleepLimitMs));
    }
    staging_[chosen].busy = true;
    last = staging_[chosen].sequence;
  }
  auto& done = segment_->status.staging[chosen].done;
  auto ok = wait_until([&] { return done.load(std::memory_order_seq_cst) >= last; });
  if (!ok) {
    release_staging({chosen, 0, {}}, false);
    return std::unexpected(ok.error());
  }
  return Staging{chosen, last + 1, std::span(segment_->staging[chosen])};
}

std::optional<ClientChannel::Staging> ClientChannel::try_acquire_staging() {
  if (!try_hold_staging_memory()) return std::nullopt;
  std::lock_guard lock(slots_mutex_);
  const std::uint32_t chosen = pick_staging(true);
  if (chosen == kStagingSlots) {
    segment_->status.staging_held.fetch_sub(1, std::memory_order_seq_cst);
    return std::nullopt;
  }
  staging_[chosen].busy = true;
  return Staging{chosen, staging_[chosen].sequence + 1, std::span(segment_->staging[chosen])};
}

Result<void> ClientChannel::wait_staging(const Staging& staging) {
  auto& done = segment_->status.staging[staging.slot].done;
  auto ok = wait_until([&] { return done.load(std::memory_order_seq_cst) >= staging.sequence; });
  // A slot is also given back when its copy failed: then the session says so, and the data is none.
  return ok ? session_error() : ok;
}

void ClientChannel::release_staging(const Staging& staging, bool used) {
  {
    std::lock_guard lock(slots_mutex_);
    staging_[staging.slot].busy = false;
    if (used) {
      staging_[staging.slot].sequence = staging.sequence;
      staging_[staging.slot].turn = ++staging_turns_;
    }
  }
  segment_->status.staging_held.fetch_sub(1, std::memory_order_seq_cst);
  slots_freed_.notify_all();
}

Result<void> ClientChannel::check() {
  const std::int64_t now = coarse_now_ns();
  if (now - last_look_ns_.load(std::memory_order_relaxed) <= kLookEveryNs) return session_error();
  last_look_ns_.store(now, std::memory_order_relaxed);
  return check_now();
}

Result<void> ClientChannel::check_now() {
  // Only end of file matters here; wake bytes stay for the thread that sleeps.
  pollfd poller{connection_.from_daemon.get(), 0, 0};
  if (::poll(&poller, 1, 0) > 0 && (poller.revents & (POLLHUP | POLLERR | POLLNVAL)))
    gone_.store(true, std::memory_order_relaxed);
  return session_error();
}

ErrorCode ClientChannel::take_async_error() {
  auto& error = segment_->status.async_error;
  if (error.load(std::memory_order_relaxed) == 0) return ErrorCode::kNone;
  return static_cast<ErrorCode>(error.exchange(0));
}

void ClientChannel::end_with(const Error& error) {
  mark_session(segment_->status, -1, SessionState::kFailed, error);
  slots_freed_.notify_all();
}

void ClientChannel::abandon() {
  connection_.to_daemon.reset();
  connection_.from_daemon.reset();
  gone_.store(true, std::memory_order_relaxed);
}

// --- EngineChannel -------------------------------------------------------------------------------

EngineChannel::EngineChannel(SessionFifos fifos, Segment segment)
    : fifos_(std::move(fifos)),
      segment_(std::move(segment)),
      consumer_(segment_.operator->()),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool EngineChannel::ready() const {
  return stopped_.load(std::memory_order_relaxed) || poked_.load(std::memory_order_relaxed) ||
         !consumer_.empty();
}

bool EngineChannel::wait_awake(const std::function<Seen()>& meanwhile) {
  const SpinLeave leave;
  if (!leave) return ready();
  std::int64_t start = now_ns();
  while (true) {
    const Seen seen = meanwhile();
    for (int i = 0; i < 2; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
    const std::int64_t now = now_ns();
    if (seen == Seen::kProgress) start = now;
    if (now - start < kSpinNs) continue;
    if (seen == Seen::kNothing || now - start > kAwakeNs) return ready();
    ::sched_yield();
  }
}

EngineChannel::Wait EngineChannel::wait(std::chrono::milliseconds timeout) {
  while (true) {
    if (stopped_.load(std::memory_order_relaxed)) return Wait::kStopped;
    if (poked_.exchange(false, std::memory_order_acquire)) return Wait::kPoked;
    if (!consumer_.empty()) return Wait::kCommand;
    segment_->status.engine_sleeps.store(1, std::memory_order_seq_cst);
    if (ready()) continue;
    std::array<pollfd, 2> pollers{pollfd{fifos_.from_client.get(), POLLIN, 0},
                                  pollfd{event_.get(), POLLIN, 0}};
    const int n = ::poll(pollers.data(), pollers.size(), static_cast<int>(timeout.count()));
    if (n == 0) return Wait::kTimeout;
    if (n > 0 && pollers[0].revents != 0) {
      std::array<char, 256> bytes;
      const ssize_t got = ::read(fifos_.from_client.get(), bytes.data(), bytes.size());
      if (got == 0) return Wait::kPeerGone;
    }
    if (n > 0 && pollers[1].revents != 0 && !stopped_.load(std::memory_order_relaxed)) {
      std::uint64_t times = 0;
      [[maybe_unused]] const ssize_t got = ::read(event_.get(), &times, sizeof(times));
    }
  }
}

Result<bool> EngineChannel::try_pop(Command& command) {
  auto popped = consumer_.try_pop(command);
  StatusPage& page = segment_->status;
  if (popped && *popped && page.client_wants_room.load(std::memory_order_seq_cst) != 0)
    wake_client();
  return popped;
}

void EngineChannel::wake_client() {
  wake(segment_->status.client_sleeps, fifos_.to_client.get());
}

void EngineChannel::stop() {
  stopped_.store(true, std::memory_order_relaxed);
  ring();
}

void EngineChannel::poke() {
  poked_.store(true, std::memory_order_release);
  ring();
}

void EngineChannel::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(event_.get(), &one, sizeof(one));
}

void EngineChannel::reply(std::uint16_t slot, std::uint32_t sequence,
                          std::span<const std::byte> payload) {
  if (slot >= kReplySlots || payload.size() > kReplyPayloadBytes) return;
  ReplySlot& answer = segment_->status.replies[slot];
  if (!payload.empty()) std::memcpy(answer.payload, payload.data(), payload.size());
  answer.bytes = static_cast<std::uint32_t>(payload.size());
  answer.status = 0;
  answer.done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::reply_error(std::uint16_t slot, std::uint32_t sequence, const Error& error) {
  if (slot >= kReplySlots) return;
  ReplySlot& answer = segment_->status.replies[slot];
  const std::size_t bytes = std::min<std::size_t>(error.message.size(), kReplyPayloadBytes);
  std::memcpy(answer.payload, error.message.data(), bytes);
  answer.bytes = static_cast<std::uint32_t>(bytes);
  answer.status = static_cast<std::uint32_t>(error.code);
  answer.done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::finish_staging(std::uint32_t slot, std::uint64_t sequence) {
  if (slot >= kStagingSlots) return;
  segment_->status.staging[slot].done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::publish_completed(std::uint32_t slot, std::uint64_t position) {
  if (slot >= kProgressSlots) return;
  // Two threads may publish, and the client may have written there.
  auto& entry = segment_->status.completed[slot];
  std::uint64_t seen = entry.load(std::memory_order_relaxed);
  while (seen < position && !entry.compare_exchange_weak(seen, position, std::memory_order_release,
                                                         std::memory_order_relaxed)) {
  }
}

void EngineChannel::grant_staging(std::uint32_t slots) {
  segment_->status.staging_granted.store(slots, std::memory_order_relaxed);
}

bool EngineChannel::reclaim_staging(const std::function<void()>& take_back) {
  StatusPage& page = segment_->status;
  page.staging_reclaimed.store(1, std::memory_order_seq_cst);
  // A slot that the client has let go may still be meant by a command in the ring.
  const bool unused = page.staging_held.load(std::memory_order_seq_cst) == 0 && consumer_.empty();
  if (unused) take_back();
  page.staging_reclaimed.store(0, std::memory_order_seq_cst);
  wake_client();
  return unused;
}

void EngineChannel::set_async_error(ErrorCode code) {
  std::uint32_t none = 0;
  segment_->status.async_error.compare_exchange_strong(none, static_cast<std::uint32_t>(code));
}

void EngineChannel::fail(const Error& error) {
  mark_session(segment_->status, fifos_.to_client.get(), SessionState::kFailed, error);
}

void EngineChannel::end(std::string_view reason) {
  mark_session(segment_->status, fifos_.to_client.get(), SessionState::kEnded,
               Error{ErrorCode::kUnavailable, std::string(reason)});
}

std::span<std::byte> EngineChannel::staging(std::uint32_t slot) const {
  return std::span(segment_->staging[slot]);
}

std::span<std::byte> EngineChannel::all_staging() const {
  return std::span(&segment_->staging[0][0], std::size_t{kStagingSlots} * kStagingSlotBytes);
}

void mark_session(StatusPage& status, int to_client, SessionState state, const Error& error) {
  if (status.marked.exchange(1) != 0) return;  // the first cause is the one to report
  const std::size_t bytes = std::min(error.message.size(), sizeof(status.error_text) - 1);
  std::memcpy(status.error_text, error.message.data(), bytes);
  status.error_text[bytes] = '\0';
  status.error.store(static_cast<std::uint32_t>(error.code), std::memory_order_relaxed);
  status.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  status.client_sleeps.store(0, std::memory_order_seq_cst);
  if (to_client >= 0) write_byte(to_client, kWakeByte);
}

}  // namespace slate::ipc
