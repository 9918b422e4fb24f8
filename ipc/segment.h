// The shared-memory segment of one session: its layout, and making and mapping it with
// Boost.Interprocess. The supervisor makes it, without a name. Client and engine map the descriptor
// that they receive. docs/ipc.md draws it.
//
// Every field says its writer. Either side may be dead, wrong or hostile. The client can only harm
// itself: the engine keeps its own copy of every position and checks what it reads.
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
/// Most slots; StatusPage::staging_granted says how many may be used.
inline constexpr std::uint32_t kStagingSlots = 32;
inline constexpr std::uint32_t kLeastStagingSlots = 4;  // slots that every session may use
inline constexpr std::uint64_t kStagingSlotBytes = 1 << 20;
inline constexpr std::uint64_t kRingBytes = 256 << 10;  // a power of two
inline constexpr std::size_t kMostAsyncText = 192;      // bytes, with the NUL

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The answer to one command. `done` is stored with release after the other fields, and read with
/// acquire. Writer: engine (supervisor when the engine died). Reader: the client thread that holds
/// the slot.
struct alignas(64) ReplySlot {
  std::atomic<std::uint32_t> done;  // reply_sequence of the command answered
  std::uint32_t status;             // ErrorCode
  std::uint32_t bytes;              // bytes of payload; an error's payload is its message
  std::uint32_t reserved;
  std::byte payload[kReplyPayloadBytes];
};
static_assert(sizeof(ReplySlot) == 1024);

/// The last copy of a staging slot. Writer: engine, `error` first. Reader: client, `done` first.
struct alignas(64) StagingState {
  std::atomic<std::uint64_t> done;  // slot_sequence of the last copy that finished
  /// ErrorCode of that copy; not 0: the slot holds none of its data.
  std::atomic<std::uint32_t> error;
};

enum class SessionState : std::uint32_t {
  kServing = 1,
  kFailed = 2,  // sticky error in `error` and `error_text`; nothing is executed any more
  kEnded = 3,   // the daemon is stopping, or ended this session
};

/// State of the session that both sides see.
struct alignas(64) StatusPage {
  // Writer: engine or supervisor; `state` last, with release.
  alignas(64) std::atomic<std::uint32_t> state;  // SessionState
  std::atomic<std::uint32_t> error;              // ErrorCode; 0 while kServing
  std::atomic<std::uint32_t> marked;  // set by the first process that marks the session's end
  char error_text[512];
  DeviceInfo device;           // written before Welcome, then constant
  std::uint64_t memory_limit;  // bytes the session may allocate; constant

  // First error of a command that has no reply. The engine writes only while it is 0, the text
  // first. The client reads the text, then stores 0.
  alignas(64) std::atomic<std::uint32_t> async_error;
  char async_text[kMostAsyncText];

  // Sleeping. A side sets its flag (seq_cst), checks its condition once more, then reads its FIFO.
  // The other side publishes, then exchanges the flag with 0. If the flag was set, it writes one
  // wake byte.
  /// Client waits for replies, staging or state.
  alignas(64) std::atomic<std::uint32_t> client_sleeps;
  std::atomic<std::uint32_t> client_wants_room;  // client waits for room in the ring
  /// Threads of the client that wait awake. They want to hear of ends at once.
  alignas(64) std::atomic<std::uint32_t> client_waits;
  alignas(64) std::atomic<std::uint32_t> engine_sleeps;

  // The command ring: byte positions that only grow. Position modulo kRingBytes is the offset.
  alignas(
      64) std::atomic<std::uint64_t> ring_tail;  // writer: client, seq_cst (against engine_sleeps)
  alignas(64)
      std::atomic<std::uint64_t> ring_head;  // writer: engine, seq_cst (against client_wants_room)

  // Progress of streams. An entry is a ring position: all work that commands up to it put on the
  // entry's stream is done. It only grows. Writer: engine, release. Reader: client, acquire.
  alignas(64) std::atomic<std::uint64_t> completed[kProgressSlots];

  // Staging. The client uses slots below `staging_granted` only and counts those it holds in
  // `staging_held`. The engine takes the memory of the slots back only while that is 0, and sets
  // `staging_reclaimed` meanwhile. Each side writes its own field, then reads the other's, seq_cst.
  alignas(64) std::atomic<std::uint32_t> staging_granted;  // writer: engine
  std::atomic<std::uint32_t> staging_reclaimed;            // writer: engine
  alignas(64) std::atomic<std::uint32_t> staging_held;     // writer: client
  StagingState staging[kStagingSlots];
  ReplySlot replies[kReplySlots];
};

/// Beginning of a segment, checked by Segment::from_fd(). Constant.
struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t protocol;
  std::uint32_t reserved;
};

/// The whole segment. Fields are at fixed offsets: both sides map the same layout.
struct alignas(4096) SegmentLayout {
  SegmentHeader header;
  StatusPage status;
  alignas(4096) std::byte ring[kRingBytes];
  alignas(4096) std::byte staging[kStagingSlots][kStagingSlotBytes];
};
static_assert(std::is_standard_layout_v<SegmentLayout>);

/// One mapping of a segment; unmaps on destruction. Thread: any, as far as the fields allow.
class Segment {
 public:
  /// Makes a segment with initialised fields, and maps it. The pages in front of the staging slots
  /// are taken at once. Errors: kOutOfMemory without room for them.
  static Result<Segment> create(const DeviceInfo& device, std::uint64_t memory_limit);
  /// Maps the segment behind a descriptor, which it keeps or closes. Errors: kProtocol for one of
  /// another size, or another version.
  static Result<Segment> from_fd(UniqueFd fd, bool keeps_fd = false);

  Segment();
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  SegmentLayout* operator->() const { return layout_; }
  StatusPage& status() const { return layout_->status; }
  explicit operator bool() const { return layout_ != nullptr; }
  /// Descriptor of a segment that was created here, or whose descriptor was kept, to be handed to
  /// the engine; -1 otherwise. Owned by the segment.
  int fd() const;

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;
  SegmentLayout* layout_ = nullptr;
};

}  // namespace slate::ipc
