// The client's end: commands go out, replies and staging slots are waited for.
#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/spin.h"
#include "ipc/channel.h"
#include "ipc/wake.h"

namespace slate::ipc {
namespace {

// A program that waits for short kernels and copies has nothing better to do, as natively. It lets
// others have the core meanwhile.
constexpr std::int64_t kYieldNs = 200'000;
constexpr std::int64_t kLookEveryNs = 100'000'000;
constexpr int kSleepLimitMs = 1000;  // a lost wake-up costs this, not a hang
constexpr std::uint32_t kMostLongCalls = kReplySlots / 2;
constexpr std::chrono::milliseconds kSlotsPoll{1};  // of those beyond

/// To a few milliseconds, for a fifth of the cost: every call of the program asks.
std::int64_t coarse_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Looks every few dozen nanoseconds, which leaves the other half of the core what it needs: the
/// thread that is waited for may have it.
template <typename Ready>
bool look_for_a_while(const Ready& ready) {
  for (int i = 0; i < 64; ++i) {
    if (ready()) return true;
    __builtin_ia32_pause();
  }
  return false;
}

/// Counts this thread among those that wait, while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<std::uint32_t>& waiting) : waiting_(waiting) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Counted() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<std::uint32_t>& waiting_;
};

}  // namespace

Result<std::unique_ptr<ClientChannel>> ClientChannel::connect(const std::string& runtime_dir,
                                                              const Patience& patience,
                                                              const Wishes& wishes) {
  auto connection = connect_to_daemon(runtime_dir, HelloKind::kSession, patience, wishes);
  if (!connection) return std::unexpected(connection.error());
  if (!connection->segment)
    return fail(ErrorCode::kProtocol, "slated's Welcome came without its descriptors");
  auto segment = Segment::from_fd(std::move(connection->segment));
  if (!segment) return std::unexpected(segment.error());
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
      return tell_end({ErrorCode::kUnavailable, "slated is gone"});
    return {};
  }
  return tell_end(
      {static_cast<ErrorCode>(page.error.load(std::memory_order_relaxed)),
       std::string(page.error_text, ::strnlen(page.error_text, sizeof(page.error_text)))});
}

std::unexpected<Error> ClientChannel::tell_end(Error error) const {
  if (on_end_ && !end_told_.exchange(true)) on_end_(error);
  return std::unexpected(std::move(error));
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
  MutexLock lock(sleep_mutex_);
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
  return sleep_until(ready);
}

Result<void> ClientChannel::sleep_until(const std::function<bool()>& ready) {
  while (true) {
    if (ready()) return {};
    if (auto ok = session_error(); !ok) return ok;
    sleep_once(ready);
  }
}

Result<void> ClientChannel::push(CommandType type, std::uint16_t slot, std::uint32_t sequence,
                                 std::span<const std::byte> body, std::span<const std::byte> tail,
                                 PlaceNote* note) {
  if (sizeof(CommandHeader) + body.size() + tail.size() > kMaxCommandBytes)
    return fail(ErrorCode::kInvalidValue, "a command is longer than the protocol allows");
  MutexLock lock(push_mutex_);
  if (auto ok = check(); !ok) return ok;
  if (!producer_.try_push(type, slot, sequence, body, tail)) {
    // The wait may ask again after a yes: the command must not be pushed twice. Asleep: the engine
    // has half a ring to do until it wakes us, and may need the core.
    bool pushed = false;
    auto ok = sleep_until([&]() SLATE_REQUIRES(push_mutex_) {
      segment_->status.client_wants_room.store(1, std::memory_order_seq_cst);
      return pushed || (pushed = producer_.try_push(type, slot, sequence, body, tail));
    });
    segment_->status.client_wants_room.store(0, std::memory_order_relaxed);
    if (!ok) return ok;
  }
  if (note != nullptr) note->take(producer_.position());
  wake(segment_->status.engine_sleeps, connection_.to_daemon.get());
  return {};
}

Result<void> ClientChannel::post(CommandType type, std::span<const std::byte> body,
                                 std::span<const std::byte> tail, PlaceNote* note) {
  return push(type, kNoReply, 0, body, tail, note);
}

bool ClientChannel::spin_until(const std::function<bool()>& ready) {
  if (ready()) return true;
  if (!may_spin()) return false;
  const Counted counted(segment_->status.client_waits);
  const std::int64_t start = now_ns();
  std::int64_t waited = 0;
  do {
    if (waited > kSpinNs) ::sched_yield();
    if (look_for_a_while(ready)) return true;
    waited = now_ns() - start;
  } while (waited < kYieldNs ||
           (waited < kAwakeNs && status().engine_sleeps.load(std::memory_order_relaxed) == 0));
  return ready();
}

Result<std::uint16_t> ClientChannel::take_reply_slot() {
  MutexLock lock(slots_mutex_);
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
    MutexLock lock(slots_mutex_);
    replies_[slot].busy = false;
  }
  slots_freed_.notify_all();
}

Result<void> ClientChannel::call(CommandType type, std::span<const std::byte> body,
                                 std::span<const std::byte> tail, std::span<std::byte> reply,
                                 std::size_t* shorter) {
  auto slot = take_reply_slot();
  if (!slot) return std::unexpected(slot.error());
  const std::uint32_t sequence = reply_sequence(*slot);
  ReplySlot& answer = segment_->status.replies[*slot];
  Result<void> result = push(type, *slot, sequence, body, tail, nullptr);
  if (result) {
    result = wait_until([&] { return answer.done.load(std::memory_order_seq_cst) == sequence; });
  }
  if (result) {
    const std::size_t bytes = std::min<std::size_t>(answer.bytes, kReplyPayloadBytes);
    if (answer.status != 0) {
      // Work that ends because its session has ended has errors of its own: the reason is meant.
      result = session_error();
      if (result) {
        result = fail(static_cast<ErrorCode>(answer.status),
                      std::string(reinterpret_cast<const char*>(answer.payload), bytes));
      }
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

Result<bool> ClientChannel::call_unless(CommandType type, std::span<const std::byte> body,
                                        const std::function<bool()>& ready) {
  MutexLock lock(slots_mutex_);
  while (long_calls_ == kMostLongCalls) {
    slots_freed_.wait_for(lock, kSlotsPoll);
    lock.unlock();
    if (ready()) return false;
    if (auto ok = check(); !ok) return std::unexpected(ok.error());
    lock.lock();
  }
  ++long_calls_;
  lock.unlock();
  auto done = call(type, body, {}, {});
  lock.lock();
  --long_calls_;
  lock.unlock();
  slots_freed_.notify_all();
  if (!done) return std::unexpected(done.error());
  return true;
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

/// A slot that is not held, for a copy of `stream`; kStagingSlots: none. In this order:
/// - the first slot whose last copy is over, so that small copies touch few slots, while the stream
///   has not used up its part;
/// - unless the slot has to be `finished`: the slot used longest ago, the stream's own if it has
///   one.
std::uint32_t ClientChannel::pick_staging(std::uint64_t stream, bool finished) {
  const std::uint32_t granted = staging_slots();
  const std::uint32_t part = std::max(granted - granted / 4, 1u);
  std::uint32_t free = kStagingSlots, own = kStagingSlots, other = kStagingSlots;
  std::uint32_t used = 0;  // by the stream's unfinished copies
  const auto take_older = [&](std::uint32_t& oldest, std::uint32_t i) SLATE_REQUIRES(slots_mutex_) {
    if (oldest == kStagingSlots || staging_[i].turn < staging_[oldest].turn) oldest = i;
  };
  for (std::uint32_t i = 0; i < granted; ++i) {
    StagingUse& use = staging_[i];
    if (!use.busy && !use.over &&
        status().staging[i].done.load(std::memory_order_seq_cst) >= use.sequence) {
      use.over = true;
      --staging_taken_;
    }
    if (use.over) {
      /// The slots are not scarce: no stream has used up its part.
      if (staging_taken_ < part) return i;
      free = std::min(free, i);
      continue;
    }
    if (use.stream == stream) ++used;
    if (!use.busy) take_older(use.stream == stream ? own : other, i);
  }
  if (used < part && free != kStagingSlots) return free;
  if (finished) return kStagingSlots;
  return used >= part || own != kStagingSlots ? own : other;
}

void ClientChannel::take_staging(std::uint32_t slot, std::uint64_t stream) {
  StagingUse& use = staging_[slot];
  if (use.over) ++staging_taken_;
  use.over = false;
  use.busy = true;
  use.stream = stream;
}

/// Waits until a slot can be held, and takes it; its last copy may not be over. Requires: the
/// memory is held.
Result<std::uint32_t> ClientChannel::choose_staging(std::uint64_t stream) {
  MutexLock lock(slots_mutex_);
  while (true) {
    const std::uint32_t chosen = pick_staging(stream, false);
    if (chosen != kStagingSlots) {
      take_staging(chosen, stream);
      return chosen;
    }
    if (auto ok = session_error(); !ok) return std::unexpected(ok.error());
    slots_freed_.wait_for(lock, std::chrono::milliseconds(kSleepLimitMs));
  }
}

Result<ClientChannel::Staging> ClientChannel::acquire_staging(std::uint64_t stream) {
  while (!try_hold_staging_memory()) {
    auto ok =
        wait_until([&] { return status().staging_reclaimed.load(std::memory_order_seq_cst) == 0; });
    if (!ok) return std::unexpected(ok.error());
  }
  const auto chosen = choose_staging(stream);
  if (!chosen) {
    segment_->status.staging_held.fetch_sub(1, std::memory_order_seq_cst);
    return std::unexpected(chosen.error());
  }
  const std::uint64_t last = staging_sequence(*chosen);
  auto& done = segment_->status.staging[*chosen].done;
  const auto ok = wait_until([&] { return done.load(std::memory_order_seq_cst) >= last; });
  if (ok) return Staging{*chosen, last + 1, std::span(segment_->staging[*chosen])};
  release_staging({*chosen, 0, {}}, false);
  return std::unexpected(ok.error());
}

std::optional<ClientChannel::Staging> ClientChannel::try_acquire_staging(std::uint64_t stream) {
  if (!try_hold_staging_memory()) return std::nullopt;
  const MutexLock lock(slots_mutex_);
  const std::uint32_t chosen = pick_staging(stream, true);
  if (chosen == kStagingSlots) {
    segment_->status.staging_held.fetch_sub(1, std::memory_order_seq_cst);
    return std::nullopt;
  }
  take_staging(chosen, stream);
  return Staging{chosen, staging_[chosen].sequence + 1, std::span(segment_->staging[chosen])};
}

Result<void> ClientChannel::wait_staging(const Staging& staging) {
  auto& done = segment_->status.staging[staging.slot].done;
  auto ok = wait_until([&] { return done.load(std::memory_order_seq_cst) >= staging.sequence; });
  if (!ok) return ok;
  // A slot is also given back when its copy failed or was refused: then its data is none.
  if (auto lasting = session_error(); !lasting) return lasting;
  const auto refusal = static_cast<ErrorCode>(
      segment_->status.staging[staging.slot].error.load(std::memory_order_relaxed));
  if (refusal == ErrorCode::kNone) return {};
  return fail(refusal, "a copy to the host was refused: " + std::string(error_name(refusal)));
}

void ClientChannel::release_staging(const Staging& staging, bool used) {
  {
    MutexLock lock(slots_mutex_);
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

Error ClientChannel::take_async_error() {
  StatusPage& page = segment_->status;
  if (page.async_error.load(std::memory_order_relaxed) == 0) return {ErrorCode::kNone, {}};
  const MutexLock lock(error_mutex_);
  const auto code = static_cast<ErrorCode>(page.async_error.load(std::memory_order_acquire));
  if (code == ErrorCode::kNone) return {code, {}};
  Error error{code, std::string(page.async_text, ::strnlen(page.async_text, kMostAsyncText))};
  page.async_error.store(0, std::memory_order_release);
  return error;
}

void ClientChannel::end_with(const Error& error) {
  mark_session(segment_->status, -1, SessionState::kFailed, error);
  slots_freed_.notify_all();
}

void ClientChannel::abandon() {
  end_told_.store(true);  // by its own wish
  connection_.to_daemon.reset();
  connection_.from_daemon.reset();
  connection_.socket.reset();
  gone_.store(true, std::memory_order_relaxed);
}

}  // namespace slate::ipc
