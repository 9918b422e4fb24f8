// SegmentBacking: what is behind the addresses of one session's segments: memory of the device,
// memory of the host with what was moved out, or nothing yet, which reads as zeros. A segment is
// mapped as a whole at first. Once it has moved it consists of pieces.
//
// A piece that comes back leaves a copy in the host pool. Until something writes there it is clean,
// and leaves without being copied. So does a piece that has come to the device blank.
//
// A program may have mapped a segment at other addresses too (cuMemMap). These are its views: what
// happens to a piece happens in each of them.
//
// Moves are made by the session's thread while none of its work is under way. Other methods are for
// the session's MemoryManager, under its lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/engine/residency/host_pool.h"
#include "daemon/engine/residency/moves.h"
#include "daemon/engine/residency/residency.h"
#include "device/device.h"

namespace slate::daemon {

/// What a session's book hears of pieces. Called from any thread.
class PieceNotes {
 public:
  virtual ~PieceNotes() = default;
  /// The contents are in the host's memory behind a descriptor, and no longer on the device.
  virtual void piece_on_host(device::AddressRange piece, int memory, std::uint64_t offset) = 0;
  virtual void piece_on_device(device::AddressRange piece) = 0;
  /// Kernels reach it in memory of the host that ends with this engine.
  virtual void piece_linked(device::AddressRange piece) = 0;
  /// Nothing was written there yet.
  virtual void piece_blank(device::AddressRange piece) = 0;
  virtual void piece_gone(device::Address piece) = 0;
  /// All of the segment is in pieces from now on.
  virtual void in_pieces(device::Address segment) = 0;
  /// Whether another engine goes on with what the notes name.
  virtual bool are_for_another() const = 0;
};

/// A piece that a session had in another engine.
struct PastPiece {
  device::AddressRange range;
  int memory = -1;           // as Device::export_memory() gave it; -1: not on the device
  int saved = -1;            // memory of the host; with `memory`, or blank, it does not count
  std::uint64_t offset = 0;  // of the contents there
  bool is_blank = false;     // whether nothing was written there
};

/// More than 25 functions, as bookkeeping for the MemoryManager and moves read and write the same
/// pieces.
class SegmentBacking {
 public:
  /// The segments that a command needs.
  struct Needs {
    bool everything = false;
    std::set<device::Address> segments;
    bool has(device::Address segment) const { return everything || segments.contains(segment); }
  };

  /// What a command may write.
  struct Written {
    bool everything = false;
    std::vector<device::AddressRange> ranges;
  };

  /// `notes`: may be null. All outlive it.
  SegmentBacking(device::Device& device, Residency& residency,
                 std::shared_ptr<Residency::Tenant> tenant, PieceNotes* notes)
      : device_(device),
        residency_(residency),
        tenant_(std::move(tenant)),
        notes_(notes),
        moves_(device) {}
  /// Requires: no segment is left.
  ~SegmentBacking();
  SegmentBacking(const SegmentBacking&) = delete;
  SegmentBacking& operator=(const SegmentBacking&) = delete;

  Residency& residency() { return residency_; }
  Residency::Tenant& tenant() { return *tenant_; }
  const Residency::Tenant& tenant() const { return *tenant_; }

  /// Backs a new segment, at once if there is room on the device. Errors: kOutOfMemory without room
  /// on device and host; those of Device::map().
  Result<void> add(device::AddressRange segment);
  /// A segment that is mapped already, also beyond the limits.
  void add_mapped(device::AddressRange segment);
  /// A segment of another engine. After an error its book is as it was. Errors: those of
  /// Device::map_exported() and HostPool::adopt().
  Result<void> add_past(device::AddressRange segment, const std::vector<PastPiece>& pieces);
  /// Pieces of another engine whose segment is not needed.
  void forget(const std::vector<PastPiece>& pieces);
  void remove(device::Address segment) { drop(segment, notes_); }
  /// Adds a view, at reserved addresses where nothing is mapped. Errors: those of
  /// Device::map_again().
  Result<void> show(device::Address segment, device::Address view);
  /// Ends a view. Requires: no unfinished work uses it.
  void hide(device::Address view);
  /// Whether kernels reach all of it.
  bool is_mapped(device::Address segment) const;
  /// The segments with bytes of the range, in whatever view, stay from now on where kernels reach
  /// them, also where that is on the host. Requires: is_mapped().
  void lock(device::AddressRange range);
  /// Notes nothing from now on, as the session ends here.
  void stop_notes();

  // The session's thread.
  /// Adds the segments with bytes of the range, in whatever view.
  void add_needed(device::AddressRange range, Needs& needs) const;
  std::uint64_t missing(const Needs& needs) const;
  /// Bytes on the device that may leave and are not needed.
  std::uint64_t spare(const Needs& needs) const;
  /// The needed segments were used now.
  void note_use(const Needs& needs);
  /// To be called for each command that writes, before it begins: what is there is not clean.
  void note_written(const Written& written);
  std::uint64_t on_host() const;
  /// A turn of the session begins. What it used in the one before is its working set at first.
  void begin_turn();
  /// The needed segments, and the working set: those used, or allocated, in this turn or the one
  /// before. What is allocated comes together, so that a program that fills its buffers one after
  /// the other has the turn of another session end once only.
  Needs with_working_set(const Needs& needs) const;

  /// Brings the needed pieces one after the other. `take_room` takes room for so many bytes. If
  /// there can be none, kernels reach the piece on the host. An error ends the call, and what has
  /// come stays. Errors: those of the device and of `take_room`.
  using TakeRoom = std::function<Result<Residency::Taken>(std::uint64_t bytes)>;
  Result<void> bring(const Needs& needs, const TakeRoom& take_room);
  /// Bytes of the needed segments that kernels reach on the host, and that may leave.
  std::uint64_t linked(const Needs& needs) const;
  std::uint64_t bytes_of(const Needs& needs) const;
  /// What kernels reach on the host, and may leave, is out of reach again. Errors as move_out().
  Result<void> unlink();
  /// Moves at least `bytes` out, the least recently used first, what is needed last. Fewer, where
  /// the rest may not leave. Errors: those of the device; kOutOfMemory without room on the host.
  Result<void> move_out(std::uint64_t bytes, const Needs& needed);

 private:
  enum class Where : std::uint8_t {
    kNowhere,  // nothing is there, and it reads as zeros
    kDevice,
    kHost,    // in the host's memory, out of reach
    kLinked,  // in memory of the host that kernels reach
  };
  struct Piece {
    device::AddressRange range;
    Where where = Where::kNowhere;
    HostPool::Extent host = {};
    HostPool::Ticket copy = HostPool::Ticket::kNone;  // of what is on the device, if it is clean
    bool is_blank = false;  // on the device, where nothing was written since it came from nowhere

    bool is_clean() const { return copy != HostPool::Ticket::kNone || is_blank; }
  };
  struct Segment {
    std::uint64_t bytes = 0;
    bool movable = true;
    std::uint64_t used = 0;  // number of the newest use
    std::vector<Piece> pieces;
    bool is_one = false;  // whether it is mapped by one call, as one piece
    std::vector<device::Address> views = {};
  };
  using Segments = std::map<device::Address, Segment>;

  std::vector<Piece> cut(device::AddressRange segment) const;
  void note_blank(const Segment& segment);
  void drop(device::Address segment, PieceNotes* notes);
  std::vector<device::AddressRange> places_of(device::AddressRange range) const
      SLATE_REQUIRES(mutex_);
  static std::vector<device::AddressRange> mapped_of(const Segment& segment);
  std::vector<device::AddressRange> views_of(device::AddressRange piece) const;
  Result<void> map(device::AddressRange piece, Where to);
  Result<void> unmap(device::AddressRange piece);
  void put(Piece& piece, Where where, HostPool::Extent host);
  void end_clean(Piece& piece);
  Result<void> bring(Piece& piece, Where to);
  Result<void> bring(Piece& piece, const TakeRoom& take_room);
  using Counts = std::function<bool(const Segment&, const Piece&)>;
  std::uint64_t sum(const Needs& needs, const Counts& counts) const;
  static std::uint64_t on_device(const Segment& segment);
  Result<void> move_out(Segment& segment, std::uint64_t bytes);
  Result<void> move_out_whole(Segment& segment);
  Result<void> copy_to_host(std::vector<Piece>& pieces);
  Result<void> put_on_host(Piece& piece);
  Result<void> leave_clean(Piece& piece, HostPool::Extent copy);
  Result<void> leave_blank(Piece& piece);
  Result<void> leave_device(Piece& piece, HostPool::Extent extent);
  Result<void> check_clean(const Piece& piece, const std::byte* contents);
  void show_whole();

  device::Device& device_;
  Residency& residency_;
  const std::shared_ptr<Residency::Tenant> tenant_;
  PieceNotes* notes_;
  bool is_left_ = false;  // whether another engine goes on with what is on the host
  Moves moves_;
  mutable Mutex mutex_;  // also of what segments consist of, which the session's thread changes
  Segments segments_ SLATE_GUARDED_BY(mutex_);
  std::map<device::Address, device::Address> views_ SLATE_GUARDED_BY(mutex_);  // their segments
  std::uint64_t uses_ = 0;
  std::uint64_t turn_ = 0;         // number of the first use in this turn
  std::uint64_t working_set_ = 0;  // number of the first use that makes a part of the working set
  std::uint64_t copied_out_ = 0;   // bytes, by all moves
};

}  // namespace slate::daemon
