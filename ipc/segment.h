// The shared-memory segment of one session: its layout, and making, opening and mapping it with
// Boost.Interprocess. The supervisor makes it (0600, owned by the client's uid) and unlinks it once
// the client has mapped it; the engine maps the descriptor that it is handed. docs/ipc.md draws it.
//
// Every field says who writes it. Both sides may be dead, wrong or hostile: the client only harms
// itself, the engine keeps its own copy of every position and checks what it reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/device_info.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/commands.h"
#include "ipc/messages.h"

namespace slate::ipc {

inline constexpr std::uint32_t kReplySlots = 32;
inline constexpr std::uint32_t kReplyPayloadBytes = 1008;
inline constexpr std::uint32_t kStagingSlots = 32;      // at most; see StatusPage::staging_granted
inline constexpr std::uint32_t kLeastStagingSlots = 4;  // that every session may use
inline constexpr std::uint64_t kStagingSlotBytes = 1 << 20;
inline constexpr std::uint64_t kRingBytes = 256 << 10;  // a power of two
inline constexpr std::size_t kMostAsyncText = 192;      // with the zero at its end

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// `done` is stored with release after the rest, and read with acquire. Writer: engine (supervisor
/// when the engine died). Reader: the client thread that owns the slot.
struct alignas(64) ReplySlot {
  std::atomic<std::uint32_t> done;  // reply_sequence of the command answered
  std::uint32_t status;             // ErrorCode
  std::uint32_t bytes;              // of payload; an error's payload is its message
  std::uint32_t reserved;
  std::byte payload[kReplyPayloadBytes];
};
static_assert(sizeof(ReplySlot) == 1024);

/// Writer: engine, `error` first. Reader: client, `done` first.
struct alignas(64) StagingState {
  std::atomic<std::uint64_t> done;   // slot_sequence of the last copy that finished
  std::atomic<std::uint32_t> error;  // ErrorCode of that copy; not 0: the slot holds no data of it
};

enum class SessionState : std::uint32_t {
  kServing = 1,
  kFailed = 2,  // a sticky error: `error` and `error_text` say which; nothing is executed any more
  kEnded = 3,   // the daemon is stopping, or ended this session
};

struct alignas(64) StatusPage {
  // Writer: engine or supervisor; `state` last, with release.
  alignas(64) std::atomic<std::uint32_t> state;  // SessionState
  std::atomic<std::uint32_t> error;              // ErrorCode, when not kServing
  std::atomic<std::uint32_t> marked;             // the first to mark the session's end sets it
  char error_text[512];
  DeviceInfo device;           // written before Welcome, then constant
  std::uint64_t memory_limit;  // bytes the session may allocate; constant

  // First error of a command that has no reply. Engine: only while it is 0, the text first. Client:
  // reads the text, then stores 0.
  alignas(64) std::atomic<std::uint32_t> async_error;
  char async_text[kMostAsyncText];

  // Sleeping: a side sets its flag (seq_cst), looks once more, then reads its FIFO. The other side,
  // after publishing, exchanges the flag with 0 and, if it was set, writes one wake byte.
  alignas(64) std::atomic<std::uint32_t> client_sleeps;  // for replies, staging, state
  std::atomic<std::uint32_t> client_wants_room;          // sleeps for room in the ring
  alignas(64) std::atomic<std::uint32_t> engine_sleeps;

  // The command ring: byte positions that only grow; position modulo kRingBytes is the offset.
  alignas(
      64) std::atomic<std::uint64_t> ring_tail;  // writer: client, seq_cst (against engine_sleeps)
  alignas(64)
      std::atomic<std::uint64_t> ring_head;  // writer: engine, seq_cst (against client_wants_room)

  // Progress of streams. Entry `progress` of a stream is a ring position: all work that commands up
  // to it put on that stream is done. Only grows. Writer: engine, release; reader: client, acquire.
  alignas(64) std::atomic<std::uint64_t> completed[kProgressSlots];

  // Staging. The client uses slots below `staging_granted` only. It counts those it holds in
  // `staging_held`; the engine takes the memory of unused slots back only while that is 0, with
  // `staging_reclaimed` set meanwhile. Each side writes its own and then reads the other's,
  // seq_cst.
  alignas(64) std::atomic<std::uint32_t> staging_granted;  // writer: engine
  std::atomic<std::uint32_t> staging_reclaimed;            // writer: engine
  std::atomic<std::uint32_t> staging_reclaims;          // writer: engine; it took all memory back
  alignas(64) std::atomic<std::uint32_t> staging_held;  // writer: client
  StagingState staging[kStagingSlots];
  ReplySlot replies[kReplySlots];
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint32_t reserved;
};

struct alignas(4096) SegmentLayout {
  SegmentHeader header;
  StatusPage status;
  alignas(4096) std::byte ring[kRingBytes];
  alignas(4096) std::byte staging[kStagingSlots][kStagingSlotBytes];
};
static_assert(std::is_standard_layout_v<SegmentLayout>);

/// One mapping of a segment. Movable; unmaps on destruction. Thread-safe as the fields are.
class Segment {
 public:
  /// Makes a new segment named `name` (shm_open rules), owner `uid`, mode 0600, fields initialised,
  /// and maps it. What is in front of the staging slots has its pages at once; kOutOfMemory without
  /// room for them.
  static Result<Segment> create(const std::string& name, std::uint32_t uid,
                                const DeviceInfo& device, std::uint64_t memory_limit);
  /// Maps an existing one by name (client). Checks size, magic and protocol.
  static Result<Segment> open(const std::string& name, std::uint64_t bytes);
  /// Maps the segment behind a descriptor (engine). Takes the descriptor, and closes it.
  static Result<Segment> from_fd(UniqueFd fd);
  /// Removes the name; mappings stay. Silent if there is none.
  static void remove(const std::string& name);
  /// Removes segments of this prefix that a killed daemon left behind. Returns how many.
  static int remove_stale(const std::string& prefix);

  Segment();
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  SegmentLayout* operator->() const { return layout_; }
  StatusPage& status() const { return layout_->status; }
  explicit operator bool() const { return layout_ != nullptr; }
  /// Valid on a created segment: to be handed to the engine. -1 otherwise.
  int fd() const;

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;
  SegmentLayout* layout_ = nullptr;
};

}  // namespace slate::ipc
