// The engine's end: commands come in, replies, progress and the session's end are told.
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "base/spin.h"
#include "ipc/channel.h"
#include "ipc/wake.h"

namespace slate::ipc {
namespace {

constexpr std::chrono::milliseconds kLongestNap{1000};

/// As much of the text as there is room for, and a zero.
template <std::size_t kBytes>
void copy_text(char (&to)[kBytes], std::string_view text) {
  const std::size_t bytes = std::min(text.size(), kBytes - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
}

}  // namespace

EngineChannel::EngineChannel(DaemonEnds ends, Segment segment, std::uint64_t start)
    : ends_(std::move(ends)),
      segment_(std::move(segment)),
      consumer_(segment_.operator->(), start),
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
    // Without work there are only commands to look for.
    for (int i = seen == Seen::kNothing ? 8 : 2; i > 0; --i) {
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
  const bool limited = timeout.count() >= 0;
  while (true) {
    if (stopped_.load(std::memory_order_relaxed)) return Wait::kStopped;
    if (poked_.exchange(false, std::memory_order_acquire)) return Wait::kPoked;
    if (!consumer_.empty()) return Wait::kCommand;
    segment_->status.engine_sleeps.store(1, std::memory_order_seq_cst);
    if (ready()) continue;
    // Never long: a wake byte may get lost on the client's side.
    const auto nap = limited ? std::min(timeout, kLongestNap) : kLongestNap;
    const auto end = sleep(nap);
    if (!end) continue;
    if (*end != Wait::kTimeout) return *end;
    if (limited && (timeout -= nap).count() == 0) return *end;
  }
}

EngineChannel::Wait EngineChannel::wait_poked() {
  while (true) {
    if (stopped_.load(std::memory_order_relaxed)) return Wait::kStopped;
    if (poked_.exchange(false, std::memory_order_acquire)) return Wait::kPoked;
    if (const auto end = sleep(std::chrono::milliseconds(-1))) return *end;
  }
}

bool EngineChannel::peer_is_gone() const {
  pollfd poller{ends_.from_client.get(), 0, 0};
  return ::poll(&poller, 1, 0) > 0 && (poller.revents & (POLLHUP | POLLERR)) != 0;
}

/// Sleeps until the client writes a byte or is gone, ring() is called, or `timeout` has passed.
/// Returns nullopt when the caller must look at the ring and the flags.
std::optional<EngineChannel::Wait> EngineChannel::sleep(std::chrono::milliseconds timeout) {
  std::array<pollfd, 2> pollers{pollfd{ends_.from_client.get(), POLLIN, 0},
                                pollfd{event_.get(), POLLIN, 0}};
  const int n = ::poll(pollers.data(), pollers.size(), static_cast<int>(timeout.count()));
  if (n == 0) return Wait::kTimeout;
  if (n > 0 && pollers[0].revents != 0) {
    std::array<char, 256> bytes;
    const ssize_t got = ::read(ends_.from_client.get(), bytes.data(), bytes.size());
    if (got == 0) return Wait::kPeerGone;
  }
  if (n > 0 && pollers[1].revents != 0 && !stopped_.load(std::memory_order_relaxed)) {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_.get(), &times, sizeof(times));
  }
  return std::nullopt;
}

Result<bool> EngineChannel::try_pop(Command& command) {
  auto popped = consumer_.try_pop(command);
  StatusPage& page = segment_->status;
  if (popped && consumer_.made_room() &&
      page.client_wants_room.load(std::memory_order_seq_cst) != 0) {
    wake_client();
  }
  return popped;
}

bool EngineChannel::is_answered(const CommandHeader& header) const {
  return header.reply_slot < kReplySlots && segment_->status.replies[header.reply_slot].done.load(
                                                std::memory_order_acquire) == header.reply_sequence;
}

bool EngineChannel::is_finished(const SlotTurn& turn) const {
  return turn.slot < kStagingSlots &&
         segment_->status.staging[turn.slot].done.load(std::memory_order_acquire) >= turn.sequence;
}

void EngineChannel::skip_answered() {
  Command command;
  const auto next = peek();
  if (next && is_answered(next->header)) (void)consumer_.try_pop(command);
}

void EngineChannel::freeze() {
  frozen_.store(true, std::memory_order_seq_cst);
}

void EngineChannel::wake_client() {
  wake(segment_->status.client_sleeps, ends_.to_client.get());
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
  if (frozen_.load(std::memory_order_relaxed)) return;
  if (slot >= kReplySlots || payload.size() > kReplyPayloadBytes) return;
  ReplySlot& answer = segment_->status.replies[slot];
  // Orders this thread behind the one that wrote the slot's last answer. The client, which has read
  // that answer, does so anyway, but through a mapping that sanitizers do not see. A client that
  // sends too early garbles only its own answer.
  (void)answer.done.load(std::memory_order_acquire);
  if (!payload.empty()) std::memcpy(answer.payload, payload.data(), payload.size());
  answer.bytes = static_cast<std::uint32_t>(payload.size());
  answer.status = 0;
  answer.done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::reply_error(std::uint16_t slot, std::uint32_t sequence, const Error& error) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  if (slot >= kReplySlots) return;
  ReplySlot& answer = segment_->status.replies[slot];
  (void)answer.done.load(std::memory_order_acquire);  // as in reply()
  const std::size_t bytes = std::min<std::size_t>(error.message.size(), kReplyPayloadBytes);
  std::memcpy(answer.payload, error.message.data(), bytes);
  answer.bytes = static_cast<std::uint32_t>(bytes);
  answer.status = static_cast<std::uint32_t>(error.code);
  answer.done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::finish_staging(std::uint32_t slot, std::uint64_t sequence, ErrorCode refusal) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  if (slot >= kStagingSlots) return;
  StagingState& state = segment_->status.staging[slot];
  state.error.store(static_cast<std::uint32_t>(refusal), std::memory_order_relaxed);
  state.done.store(sequence, std::memory_order_seq_cst);
  wake_client();
}

void EngineChannel::publish_completed(std::uint32_t slot, std::uint64_t position) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  if (slot >= kProgressSlots) return;
  // Two threads may publish, and the client may have written there.
  auto& entry = segment_->status.completed[slot];
  std::uint64_t seen = entry.load(std::memory_order_relaxed);
  while (seen < position && !entry.compare_exchange_weak(seen, position, std::memory_order_release,
                                                         std::memory_order_relaxed)) {
  }
}

Result<void> EngineChannel::send_memory(std::uint64_t id, int memory) {
  if (frozen_.load(std::memory_order_relaxed))
    return slate::fail(ErrorCode::kUnavailable, "another engine goes on with the session");
  return ipc::send_memory(ends_.socket.get(), id, memory);
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

void EngineChannel::set_async_error(const Error& error) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  StatusPage& page = segment_->status;
  const MutexLock lock(error_mutex_);
  if (page.async_error.load(std::memory_order_acquire) != 0) return;
  copy_text(page.async_text, error.message);
  page.async_error.store(static_cast<std::uint32_t>(error.code), std::memory_order_release);
}

void EngineChannel::fail(const Error& error) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  mark_session(segment_->status, ends_.to_client.get(), SessionState::kFailed, error);
}

void EngineChannel::end(std::string_view reason) {
  if (frozen_.load(std::memory_order_relaxed)) return;
  mark_session(segment_->status, ends_.to_client.get(), SessionState::kEnded,
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
  copy_text(status.error_text, error.message);
  status.error.store(static_cast<std::uint32_t>(error.code), std::memory_order_relaxed);
  status.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  status.client_sleeps.store(0, std::memory_order_seq_cst);
  if (to_client >= 0) write_byte(to_client, kWakeByte);
}

}  // namespace slate::ipc
