// The two ends of a session's channel: ring, replies, staging and status page, with the waiting
// added. The layout is segment.h, the meeting of both sides meeting.h. docs/ipc.md explains the
// protocol.
//
// Thread: ClientChannel is used by libslate from any thread. EngineChannel is used by one session
// thread, except for the methods that say otherwise.
//
// Waiting: a side spins for a few microseconds where there are more than two cores, then sleeps in
// read() on its FIFO. End of file there means that the peer is gone.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/meeting.h"
#include "ipc/ring.h"
#include "ipc/segment.h"

namespace slate::ipc {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Where the position of a command in the stream of commands is stored. It is stored before any
/// later command has a position, so the stored positions only grow.
struct PlaceNote {
  /// Position of the newest command; null: not stored.
  std::atomic<std::uint64_t>* newest = nullptr;
  /// Position of the stream's newest command; null: not stored.
  std::atomic<std::uint64_t>* of_stream = nullptr;
  std::uint64_t position = 0;  // position of the command itself, once it is sent
  std::uint64_t before = 0;    // value of `of_stream` before the command

  void take(std::uint64_t place) {
    position = place;
    if (newest != nullptr) newest->store(place, std::memory_order_release);
    if (of_stream == nullptr) return;
    before = of_stream->load(std::memory_order_relaxed);
    of_stream->store(place, std::memory_order_release);
  }
};

/// The channel's end in libslate.
/// Thread: any. After fork() the child must call abandon() and make a new channel.
class ClientChannel {
 public:
  /// Connects to the daemon on `runtime_dir` and maps the session's segment. Waits until then.
  /// Errors: as connect_to_daemon() and Segment::from_fd().
  static Result<std::unique_ptr<ClientChannel>> connect(const std::string& runtime_dir,
                                                        const Patience& patience,
                                                        const Wishes& wishes = {});
  ClientChannel(Connection connection, Segment segment);

  /// Sends a command that has no reply. Waits only while the ring is full. `note`, if given, takes
  /// the command's position, for completed().
  /// Errors: the session's lasting error; kInvalidValue for a command longer than kMaxCommandBytes.
  Result<void> post(CommandType type, std::span<const std::byte> body,
                    std::span<const std::byte> tail = {}, PlaceNote* note = nullptr);
  /// Sends a command and waits for its reply. The reply must be exactly `reply` long; with
  /// `shorter`, which receives its length, it may be shorter.
  /// Errors: those of post(), the code in the reply, kProtocol for a reply of the wrong length.
  Result<void> call(CommandType type, std::span<const std::byte> body,
                    std::span<const std::byte> tail, std::span<std::byte> reply,
                    std::size_t* shorter = nullptr);

  /// Sends a command whose empty answer comes when work is done, and waits for that answer. Only 16
  /// such calls are under way at a time, so that other commands find a reply slot. A thread that
  /// waits for its place calls `ready` every millisecond.
  /// Returns false if `ready` returned true first; then nothing was sent.
  Result<bool> call_unless(CommandType type, std::span<const std::byte> body,
                           const std::function<bool()>& ready);

  /// A staging slot held for one copy: its memory, and what Place::in_slot() takes.
  struct Staging {
    std::uint32_t slot = 0;
    std::uint64_t sequence = 0;
    std::span<std::byte> memory;
  };
  /// Waits for a slot for a copy of `stream`. The unfinished copies of one stream use at most three
  /// quarters of all slots, so that other streams find one. Afterwards post the copy command with
  /// slot and sequence, and call release_staging().
  /// Errors: the session's lasting error.
  Result<Staging> acquire_staging(std::uint64_t stream = kDefaultStream);
  /// A slot that is free now, if there is one; never waits. For threads that hold another slot
  /// already.
  std::optional<Staging> try_acquire_staging(std::uint64_t stream = kDefaultStream);
  /// Waits until the copy that used `staging` has finished. Required before data that came to the
  /// host is read. Errors: those of that copy, or of the session.
  Result<void> wait_staging(const Staging& staging);
  /// Gives the slot back. `used`: whether a copy command was posted with it.
  void release_staging(const Staging& staging, bool used);
  /// Number of slots that may be used now, 1 to kStagingSlots.
  std::uint32_t staging_slots() const;

  /// Whether all work of the commands up to `position` on the stream with progress entry `slot` is
  /// done. Requires: slot < kProgressSlots.
  bool completed(std::uint32_t slot, std::uint64_t position) const {
    return status().completed[slot].load(std::memory_order_acquire) >= position;
  }
  /// Waits awake for `ready`, and returns its last answer. It gives up when sleeping would cost
  /// less, after 0.2 ms, or after 10 ms while the engine is awake for this session. Where
  /// may_spin() is false it asks once.
  bool spin_until(const std::function<bool()>& ready);

  /// The shared memory that came with the reply to a command. Requires: one such command at a time.
  /// Errors: kProtocol when there is none of this number.
  Result<UniqueFd> receive_memory(std::uint64_t id) {
    return ipc::receive_memory(connection_.socket.get(), id);
  }

  /// Fails with the session's lasting error once it is not served any more, or kUnavailable when
  /// the daemon is gone. Cheap: polls the FIFO at most every 100 ms.
  Result<void> check();
  /// As check(), but polls the FIFO now.
  Result<void> check_now();
  /// Takes the first error of the commands that have no reply; its code is kNone if there is none.
  Error take_async_error();
  /// Makes `error` the session's lasting error on this side; the engine is not told.
  void end_with(const Error& error);
  /// Sets the function that the first call that finds the session's lasting error calls, once. It
  /// must call no method of this object. Requires: no other call was made before.
  void on_end(std::function<void(const Error& error)> told) { on_end_ = std::move(told); }

  const StatusPage& status() const { return segment_.status(); }
  std::uint64_t session() const { return connection_.welcome.session; }
  /// Closes the descriptors that a forked child inherited; the parent's session goes on.
  void abandon();

 private:
  struct ReplyUse {
    bool busy = false;
    std::uint32_t sequence = 0;
  };
  struct StagingUse {
    /// Whether a thread holds the slot.
    bool busy = false;
    bool over = true;            // whether its last copy was seen to be over; false while busy
    std::uint64_t sequence = 0;  // sequence number of the last copy
    std::uint64_t turn = 0;      // value of `staging_turns_` at the last copy
    std::uint64_t stream = 0;    // stream of the last copy
  };

  /// Writes the command into the ring, waits while it is full, and wakes the engine.
  Result<void> push(CommandType type, std::uint16_t slot, std::uint32_t sequence,
                    std::span<const std::byte> body, std::span<const std::byte> tail,
                    PlaceNote* note);
  bool try_hold_staging_memory();
  /// Waits for a slot to hold.
  Result<std::uint32_t> choose_staging(std::uint64_t stream);
  std::uint32_t pick_staging(std::uint64_t stream, bool finished) SLATE_REQUIRES(slots_mutex_);
  void take_staging(std::uint32_t slot, std::uint64_t stream) SLATE_REQUIRES(slots_mutex_);
  /// Waits for `ready`, awake and then asleep. Errors: the session's lasting error.
  Result<void> wait_until(const std::function<bool()>& ready);
  Result<void> sleep_until(const std::function<bool()>& ready);
  /// Sleeps until a wake byte comes, another thread has read one, or a second has passed.
  void sleep_once(const std::function<bool()>& ready);
  void read_wake_bytes(int timeout_ms);
  Result<void> session_error() const;
  /// Calls `on_end_` if it was never called, and returns the error.
  std::unexpected<Error> tell_end(Error error) const;
  Result<std::uint16_t> take_reply_slot();
  void give_back_reply_slot(std::uint16_t slot);
  // The number of a slot's present or last use, which only the thread that holds the slot changes.
  // Requires: the caller holds the slot.
  std::uint32_t reply_sequence(std::uint16_t slot) const SLATE_NO_THREAD_SAFETY_ANALYSIS {
    return replies_[slot].sequence;
  }
  std::uint64_t staging_sequence(std::uint32_t slot) const SLATE_NO_THREAD_SAFETY_ANALYSIS {
    return staging_[slot].sequence;
  }

  Connection connection_;
  Segment segment_;
  Mutex push_mutex_;
  RingProducer producer_ SLATE_GUARDED_BY(push_mutex_);
  Mutex slots_mutex_;
  CondVar slots_freed_;
  std::array<ReplyUse, kReplySlots> replies_ SLATE_GUARDED_BY(slots_mutex_);
  std::uint32_t long_calls_ SLATE_GUARDED_BY(slots_mutex_) = 0;  // calls of call_unless() under way
  std::array<StagingUse, kStagingSlots> staging_ SLATE_GUARDED_BY(slots_mutex_);
  /// Number of copies that used a slot so far: the order of use.
  std::uint64_t staging_turns_ SLATE_GUARDED_BY(slots_mutex_) = 0;
  // Slots whose last copy is not over.
  std::uint32_t staging_taken_ SLATE_GUARDED_BY(slots_mutex_) = 0;
  /// One thread reads the FIFO, the others wait for it.
  Mutex sleep_mutex_;
  CondVar woken_;
  bool reader_present_ SLATE_GUARDED_BY(sleep_mutex_) = false;
  Mutex error_mutex_;  // guards taking of StatusPage::async_error
  std::atomic<bool> gone_{false};
  std::function<void(const Error&)> on_end_;
  mutable std::atomic<bool> end_told_{false};
  std::atomic<std::int64_t> last_look_ns_{0};
};

/// The engine's end of one session's channel.
/// Thread: the session's, except for the methods marked below.
class EngineChannel {
 public:
  /// `start`: the position up to which another engine has taken the commands.
  EngineChannel(DaemonEnds ends, Segment segment, std::uint64_t start = 0);

  /// False when no descriptor was left: then stop() and poke() end no wait.
  bool can_be_woken() const { return static_cast<bool>(event_); }

  /// Why a wait ended.
  enum class Wait { kCommand, kPeerGone, kStopped, kPoked, kTimeout };
  /// What the session sees of its work on the device: none, work that goes on, or work that has
  /// ended.
  enum class Seen { kNothing, kWork, kProgress };
  /// Waits awake for a command, stop() or poke(), and calls `meanwhile` in between. It needs a
  /// SpinLeave. It gives up after 20 us without work on the device, or 10 ms after the last
  /// progress with work. Returns false when the caller should call wait(), which sleeps.
  bool wait_awake(const std::function<Seen()>& meanwhile);
  /// Whether a thread of the client waits awake.
  bool client_waits() const {
    return segment_->status.client_waits.load(std::memory_order_relaxed) != 0;
  }
  /// Waits asleep until a command can be popped, the client is gone, stop() or poke() was called,
  /// or `timeout` has passed. A negative timeout is none.
  Wait wait(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1));
  /// Waits asleep until the client is gone, or stop() or poke() was called. Commands stay in the
  /// ring, so the client waits when it is full.
  Wait wait_poked();
  /// Asks the system whether the client is gone. For a session thread that has not slept for long.
  bool peer_is_gone() const;
  /// As RingConsumer::try_pop(), and wakes a client that waits for room in the ring.
  Result<bool> try_pop(Command& command);
  /// Position in the stream of commands at which the last popped command ends.
  std::uint64_t position() const { return consumer_.position(); }

  /// The next command, which stays in the ring; nullopt: there is none.
  std::optional<RingConsumer::Next> peek() const { return consumer_.peek(); }
  /// Skips the next command if it has its answer already. To be called once, where another engine
  /// has died.
  void skip_answered();

  // Thread: any, for the methods from here on.
  /// Whether the command has its answer, or the slot's copy has ended.
  bool is_answered(const CommandHeader& header) const;
  bool is_finished(const SlotTurn& turn) const;
  /// From now on the client hears nothing more from this engine: another one goes on.
  void freeze();
  /// Ends every wait of the session thread from now on.
  void stop();
  /// Ends one wait of the session thread, the present one or the next.
  void poke();
  /// Answers the command in reply slot `slot`. A slot or payload out of bounds is ignored.
  void reply(std::uint16_t slot, std::uint32_t sequence, std::span<const std::byte> payload);
  /// Answers with an error, whose message is cut to kReplyPayloadBytes.
  void reply_error(std::uint16_t slot, std::uint32_t sequence, const Error& error);
  /// Marks the staging slot's copy `sequence` as finished. `refusal`: why it was not made, for the
  /// thread that waits for it.
  void finish_staging(std::uint32_t slot, std::uint64_t sequence,
                      ErrorCode refusal = ErrorCode::kNone);
  /// Raises the progress entry `slot` to `position`. An entry that is not in the table is ignored.
  void publish_completed(std::uint32_t slot, std::uint64_t position);
  /// Gives the client shared memory, which it takes by ClientChannel::receive_memory(). Errors: no
  /// room for another descriptor now; frozen.
  Result<void> send_memory(std::uint64_t id, int memory);
  /// Sets the number of staging slots that the client may use. It may still hold others.
  void grant_staging(std::uint32_t slots);
  /// Runs `take_back` while the client cannot take staging slots, unless it holds some now or
  /// commands are in the ring. The client's next copy waits meanwhile. Returns whether `take_back`
  /// was run.
  bool reclaim_staging(const std::function<void()>& take_back);
  /// Reports the error of a command without reply. Ignored until the client has taken the one
  /// before.
  void set_async_error(const Error& error);
  /// Marks the session's end for the client: fail() with its sticky error, end() as ended by the
  /// daemon.
  void fail(const Error& error);
  void end(std::string_view reason);

  /// Memory of a staging slot, for the device. Requires: slot < kStagingSlots.
  std::span<std::byte> staging(std::uint32_t slot) const;
  /// Memory of all staging slots, for registration with the device.
  std::span<std::byte> all_staging() const;

 private:
  /// Whether a wait would end at once.
  bool ready() const;
  /// Sleeps until an event; nullopt: the caller looks what it was.
  std::optional<Wait> sleep(std::chrono::milliseconds timeout);
  void wake_client();
  void ring();

  DaemonEnds ends_;
  Segment segment_;
  RingConsumer consumer_;
  UniqueFd event_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> poked_{false};
  std::atomic<bool> frozen_{false};
  Mutex error_mutex_;  // two threads may call set_async_error()
};

/// Marks a session as failed or ended in its status page and wakes the client through `to_client`
/// (-1: no one). The first mark counts. The supervisor calls it, too, when the engine that served
/// the session is gone.
void mark_session(StatusPage& status, int to_client, SessionState state, const Error& error);

}  // namespace slate::ipc
