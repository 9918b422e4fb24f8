// The two ends of a session: ring, replies, staging and status with the waiting added.
// ClientChannel is used by libslate from any thread; EngineChannel by one session thread, but for
// the methods that say otherwise.
//
// Waiting: spin for a few microseconds where there are more than two cores, then sleep in read() on
// the FIFO. End of file there means that the peer is gone.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/rendezvous.h"
#include "ipc/ring.h"
#include "ipc/segment.h"

namespace slate::ipc {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Where the places of commands in the stream of commands are noted: before any later command has
/// its place, so that what is noted grows.
struct PlaceNote {
  std::atomic<std::uint64_t>* newest = nullptr;
  std::atomic<std::uint64_t>* of_stream = nullptr;  // null: not noted
  std::uint64_t position = 0;                       // the command's own, once it is sent
  std::uint64_t before = 0;                         // what `of_stream` said before it

  void take(std::uint64_t place) {
    position = place;
    if (newest != nullptr) newest->store(place, std::memory_order_release);
    if (of_stream == nullptr) return;
    before = of_stream->load(std::memory_order_relaxed);
    of_stream->store(place, std::memory_order_release);
  }
};

/// libslate's end. Thread-safe. After fork() the child must call abandon() and make a new one.
class ClientChannel {
 public:
  /// Connects to the daemon on `runtime_dir` and maps the session's segment.
  static Result<std::unique_ptr<ClientChannel>> connect(const std::string& runtime_dir,
                                                        std::chrono::milliseconds timeout,
                                                        const Wishes& wishes = {});
  ClientChannel(Connection connection, Segment segment);

  /// Sends a command that has no reply. Waits only while the ring is full. `note`, if given, takes
  /// its place in the stream of commands, for completed().
  Result<void> post(CommandType type, std::span<const std::byte> body,
                    std::span<const std::byte> tail = {}, PlaceNote* note = nullptr);
  /// Sends a command and waits for its reply, which must be exactly `reply` long (or may be shorter
  /// when `shorter` is given, which then receives the length).
  Result<void> call(CommandType type, std::span<const std::byte> body,
                    std::span<const std::byte> tail, std::span<std::byte> reply,
                    std::size_t* shorter = nullptr);

  /// Sends a command that is answered, without more, when work is done. Few of them may be under
  /// way, so that every other command finds a reply slot; who waits to be one of them asks `ready`
  /// every now and then. False if that came first, and nothing was sent.
  Result<bool> call_unless(CommandType type, std::span<const std::byte> body,
                           const std::function<bool()>& ready);

  /// A staging slot for one copy: the memory, and what to put in StagedCopy.
  struct Staging {
    std::uint32_t slot = 0;
    std::uint64_t sequence = 0;
    std::span<std::byte> memory;
  };
  /// Waits for a slot for a copy of this stream, whose unfinished copies have three quarters of all
  /// at most: others' need not wait for what the stream waits for. Then either post the copy
  /// command naming slot and sequence and call release(), or call release() with `used` false.
  Result<Staging> acquire_staging(std::uint64_t stream = kDefaultStream);
  /// One that is free now; for who holds another already, and must not wait then.
  std::optional<Staging> try_acquire_staging(std::uint64_t stream = kDefaultStream);
  /// Waits until the copy that used `staging` has finished (needed before reading what came to the
  /// host). The error of that very copy, or of the session.
  Result<void> wait_staging(const Staging& staging);
  void release_staging(const Staging& staging, bool used);
  /// Slots that may be used at present, at most kStagingSlots.
  std::uint32_t staging_slots() const;

  /// True when the work of every command up to `position` on the stream with this progress entry is
  /// done. Requires: slot < kProgressSlots.
  bool completed(std::uint32_t slot, std::uint64_t position) const {
    return status().completed[slot].load(std::memory_order_acquire) >= position;
  }
  /// Waits for `ready`, but only as long as waiting costs less than going to sleep, or the engine
  /// is awake for this session, milliseconds at most; false when it has not come by then.
  bool spin_until(const std::function<bool()>& ready) const;

  /// Not an error while the session is being served; else its sticky error, or kUnavailable when
  /// the daemon is gone. Cheap: looks at the FIFO at most every 100 ms.
  Result<void> check();
  /// The same, but looks at the FIFO now.
  Result<void> check_now();
  /// Takes the first error of the commands that have no reply; kNone if there is none.
  Error take_async_error();
  /// Makes `error` the session's lasting one, for this side: the engine does not hear of it.
  void end_with(const Error& error);
  /// Has `told` called once, by the first call that finds the session's lasting error. It must
  /// call nothing of this object. Before any other call.
  void on_end(std::function<void(const Error& error)> told) { on_end_ = std::move(told); }

  const StatusPage& status() const { return segment_.status(); }
  std::uint64_t session() const { return connection_.welcome.session; }
  /// Closes the inherited descriptors in a forked child without disturbing the parent's session.
  void abandon();

 private:
  struct ReplyUse {
    bool busy = false;
    std::uint32_t sequence = 0;
  };
  struct StagingUse {
    bool busy = false;
    bool backed = false;         // has its pages, so that writing to it raises no signal
    bool over = true;            // the last copy is, as far as was seen; not while busy
    std::uint64_t sequence = 0;  // of the last copy
    std::uint64_t turn = 0;      // staging_turns_ then
    std::uint64_t stream = 0;    // of that copy
  };

  Result<void> push(CommandType type, std::uint16_t slot, std::uint32_t sequence,
                    std::span<const std::byte> body, std::span<const std::byte> tail,
                    PlaceNote* note);
  bool try_hold_staging_memory();
  Result<std::uint32_t> choose_staging(std::uint64_t stream);
  std::uint32_t pick_staging(std::uint64_t stream, bool finished);
  bool back_staging(std::uint32_t slot);
  bool has_backed_staging();
  void take_staging(std::uint32_t slot, std::uint64_t stream);
  Result<void> wait_until(const std::function<bool()>& ready);
  Result<void> sleep_until(const std::function<bool()>& ready);
  void sleep_once(const std::function<bool()>& ready);
  void read_wake_bytes(int timeout_ms);
  Result<void> session_error() const;
  std::unexpected<Error> tell_end(Error error) const;
  Result<std::uint16_t> take_reply_slot();
  void give_back_reply_slot(std::uint16_t slot);

  Connection connection_;
  Segment segment_;
  std::mutex push_mutex_;  // guards producer_
  RingProducer producer_;
  std::mutex slots_mutex_;  // guards replies_, long_calls_, staging_*
  std::condition_variable slots_freed_;
  std::array<ReplyUse, kReplySlots> replies_;
  std::uint32_t long_calls_ = 0;  // of call_unless()
  std::array<StagingUse, kStagingSlots> staging_;
  std::uint64_t staging_turns_ = 0;
  std::uint32_t staging_taken_ = 0;  // slots that are not over
  std::uint32_t reclaims_seen_ = 0;  // StatusPage::staging_reclaims, when `backed` was last true
  bool staging_full_ = false;        // a slot found no room since then: those with pages are used
  std::mutex sleep_mutex_;           // one thread reads the FIFO, the others wait for it
  std::condition_variable woken_;
  bool reader_present_ = false;
  std::mutex error_mutex_;  // guards the taking of StatusPage::async_error
  std::atomic<bool> gone_{false};
  std::function<void(const Error&)> on_end_;
  mutable std::atomic<bool> end_told_{false};
  std::atomic<std::int64_t> last_look_ns_{0};
};

/// The engine's end of one session.
class EngineChannel {
 public:
  EngineChannel(SessionFifos fifos, Segment segment);

  /// False when there was no descriptor left: stop() and poke() would wake nobody.
  bool can_be_woken() const { return static_cast<bool>(event_); }

  enum class Wait { kCommand, kPeerGone, kStopped, kPoked, kTimeout };
  /// What the session sees of its work on the device: there is none, it goes on, some has ended.
  enum class Seen { kNothing, kWork, kProgress };
  /// Waits awake, calling `meanwhile`, where there are cores to spare: for microseconds, and for
  /// milliseconds after the last progress while there is work. False when wait() would go to sleep.
  bool wait_awake(const std::function<Seen()>& meanwhile);
  /// Waits, asleep, until a command can be popped, the client is gone, stop() or poke() was called,
  /// or `timeout` has passed (negative: no limit).
  Wait wait(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1));
  /// Leaves commands where they are, so that the client waits when the ring is full: waits, asleep,
  /// until it is gone, or stop() or poke() was called.
  Wait wait_poked();
  /// Asks the system: for who has not slept for long.
  bool peer_is_gone() const;
  /// As RingConsumer::try_pop, and wakes a client that waits for room.
  Result<bool> try_pop(Command& command);
  /// Where the last command popped ends in the stream of commands.
  std::uint64_t position() const { return consumer_.position(); }

  // These may be called from any thread.
  /// Ends wait() in the session thread, now or at its next call.
  void stop();
  /// Ends one wait() in the session thread, now or the next one.
  void poke();
  void reply(std::uint16_t slot, std::uint32_t sequence, std::span<const std::byte> payload);
  void reply_error(std::uint16_t slot, std::uint32_t sequence, const Error& error);
  /// `refusal`: why the slot's copy did not come about, for the thread that waits for it.
  void finish_staging(std::uint32_t slot, std::uint64_t sequence,
                      ErrorCode refusal = ErrorCode::kNone);
  /// Raises the progress entry `slot` to `position`; one that is not in the table is ignored.
  void publish_completed(std::uint32_t slot, std::uint64_t position);
  /// How many staging slots the client may use from now on; it may still hold others.
  void grant_staging(std::uint32_t slots);
  /// Runs `take_back` while the client is kept from using staging slots, unless it holds some now.
  /// The client's next copy waits for it. False if it was not run.
  bool reclaim_staging(const std::function<void()>& take_back);
  /// The first error that the client has not taken counts.
  void set_async_error(const Error& error);
  /// The session's end, for the client to see: its sticky error, or kEnded.
  void fail(const Error& error);
  void end(std::string_view reason);

  /// Staging memory of a slot, for the device. Requires: slot < kStagingSlots.
  std::span<std::byte> staging(std::uint32_t slot) const;
  /// All staging slots, for registration with the device.
  std::span<std::byte> all_staging() const;

 private:
  bool ready() const;
  std::optional<Wait> sleep(std::chrono::milliseconds timeout);
  void wake_client();
  void ring();

  SessionFifos fifos_;
  Segment segment_;
  RingConsumer consumer_;
  UniqueFd event_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> poked_{false};
  std::mutex error_mutex_;  // two threads may set_async_error()
};

/// Marks a session as failed or ended in its status page and wakes the client: for the supervisor,
/// when the engine that served it is gone.
void mark_session(StatusPage& status, int to_client, SessionState state, const Error& error);

}  // namespace slate::ipc
