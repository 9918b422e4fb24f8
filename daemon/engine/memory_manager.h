// MemoryManager: the device memory of one session. It reserves the session's arena (one range of
// addresses), backs it with physical segments on demand, and hands out pieces. It knows no streams:
// memory that work may still use is retired first; the caller finishes the free after that work.
//
// Thread-safe. Charged are the mapped segments, since others cannot have them, and what the session
// has outside of the arena. The slack around segments is not charged.
//
// It has more than 15 members: the segments, the blocks in their states, and the charges change
// together, under one mutex.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/memory_ledger.h"
#include "daemon/engine/residency/segment_backing.h"
#include "daemon/engine/slack.h"
#include "device/device.h"

namespace slate::daemon {

/// What a session's book hears of its memory. Called under the manager's lock, from any thread.
class MemoryNotes {
 public:
  virtual ~MemoryNotes() = default;
  virtual void arena(device::AddressRange range) = 0;
  /// There is a segment. `dedicated`: it is for one allocation. `mapped`: all of it is on the
  /// device; else its pieces are noted.
  virtual void segment(device::AddressRange segment, bool dedicated, bool mapped) = 0;
  virtual void unmapped(device::Address segment) = 0;
  /// An allocation is live, or was freed while work may still use it.
  virtual void block(device::Address address, std::uint64_t bytes, bool retired) = 0;
  virtual void block_gone(device::Address address) = 0;
};

/// The memory that a session had in another engine.
struct PastMemory {
  struct Segment {
    device::AddressRange range;
    bool dedicated = false;
    int memory = -1;  // as Device::export_memory() gave it; -1: not there any more
    int saved = -1;   // as save_memory() gave it, where `memory` is not there
    std::vector<PastPiece> pieces = {};  // if it was in pieces, all of them
  };
  struct Block {
    device::AddressRange range;
    bool retired = false;
  };
  device::AddressRange arena;
  std::vector<Segment> segments;
  std::vector<Block> blocks;
};

class MemoryManager {
 public:
  /// Alignment of every allocation, as cudaMalloc gives.
  static constexpr std::uint64_t kAlign = 512;

  /// Reserves the arena. `limit`: the most bytes that may be charged. `account`: what is charged is
  /// taken from it, too; null: from none. `notes`: see there; called until release(); null: none.
  /// `wished`: where the arena is to lie; empty: anywhere. Where another one lies there, the arena
  /// is elsewhere and has `limit` bytes. `backing`: what is behind segments; null: always memory of
  /// the device. Errors: those of Device::reserve_at().
  static Result<std::unique_ptr<MemoryManager>> make(
      device::Device& device, std::uint64_t limit,
      std::unique_ptr<MemoryLedger::Account> account = nullptr, MemoryNotes* notes = nullptr,
      device::AddressRange wished = {}, std::unique_ptr<SegmentBacking> backing = nullptr);
  /// Makes the memory of another engine's manager again, at the same addresses and with its
  /// contents. Errors: kUnavailable when the addresses are taken, or when some of it is on the host
  /// and there is no `backing`; those of Device::map_exported().
  static Result<std::unique_ptr<MemoryManager>> make_again(
      device::Device& device, std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
      MemoryNotes* notes, const PastMemory& past,
      std::unique_ptr<SegmentBacking> backing = nullptr);
  /// Requires: release() was called.
  ~MemoryManager();
  MemoryManager(const MemoryManager&) = delete;
  MemoryManager& operator=(const MemoryManager&) = delete;

  /// Lets segments that nobody uses any more stay mapped while `when()` is true, until
  /// unmap_left(). Of such a range `left` hears; it must not call back. Any thread. Requires: no
  /// other method is called meanwhile.
  void unmap_later(std::function<bool()> when, std::function<void(device::AddressRange)> left) {
    later_ = {std::move(when), std::move(left)};
  }
  /// Segments that were left since the last call, for unmap_left().
  std::vector<device::Address> take_left();
  bool has_left() const { return has_left_.load(std::memory_order_relaxed); }
  /// Requires: no unfinished work has begun before the segments were left.
  void unmap_left(const std::vector<device::Address>& segments);

  device::AddressRange arena() const { return arena_; }
  std::uint64_t limit() const { return limit_; }
  std::uint64_t charged() const;
  /// Bytes that may be charged further at present.
  std::uint64_t chargeable() const;
  /// Whether the last request that was refused wanted memory that other sessions have.
  bool waits_for_others() const;

  /// kInvalidValue for 0 bytes. kOutOfMemory beyond the limit, or when the device is full. Memory
  /// that is being freed may help then, see wait_for_free().
  Result<device::Address> allocate(std::uint64_t bytes);

  /// Memory of whole granules without slack, for Device::map_again(): the program does not get its
  /// address. Otherwise as allocate(). Requires: `bytes` is a multiple of the granularity.
  Result<device::Address> allocate_bare(std::uint64_t bytes);

  /// First half of a free: the address is no allocation from now on, but stays backed.
  /// kInvalidValue when it is none.
  Result<void> retire(device::Address address);
  /// Second half of a free. Requires: retired, and no unfinished work uses the memory.
  void finish_free(device::Address address);
  /// Waits until some free was finished, or `timeout` has passed. False, at once, when nothing is
  /// retired or left.
  bool wait_for_free(std::chrono::milliseconds timeout);

  // Also for the memory of textures and other sessions.
  /// The live allocation with these bytes; nullopt when there is none.
  std::optional<device::AddressRange> allocation_of(device::Address address,
                                                    std::uint64_t bytes = 1) const;
  /// The same, also where it was freed and work may still use it.
  std::optional<device::AddressRange> block_of(device::Address address) const;
  /// Holds the live allocation that begins there. It stays backed, also after a free or release(),
  /// until let_go() was called as often. kInvalidValue when there is none.
  Result<void> keep(device::Address address);
  void let_go(device::Address address);
  /// Maps the live allocation that begins there, one of allocate_bare(), at `view` too. It stays
  /// backed until hide(). kInvalidValue when there is none; those of Device::map_again().
  Result<void> show(device::Address address, device::Address view);
  /// Requires: no unfinished work uses the view.
  void hide(device::Address address, device::AddressRange view);
  /// Whether kernels reach all of a segment.
  bool is_mapped(device::Address segment) const {
    const MutexLock lock(mutex_);
    return is_on_device(segment);
  }
  /// What is there, in whatever view, leaves the device no more. Requires: kernels reach it.
  void lock_in_place(device::AddressRange range) {
    const MutexLock lock(mutex_);
    if (backing_) backing_->lock(range);
  }

  /// Whether the bytes lie in one live allocation.
  bool owns(device::Address address, std::uint64_t bytes) const {
    return allocation_of(address, bytes).has_value();
  }

  /// Charges memory outside of the arena, such as arrays': charge() before it is made,
  /// retire_charge() when it is retired, finish_charge() once it is gone. kOutOfMemory beyond the
  /// limit.
  Result<void> charge(std::uint64_t bytes);
  void retire_charge();
  /// How often the session, or its user, was refused what would be too much for it.
  std::uint64_t refusals() const {
    const MutexLock lock(mutex_);
    return refusals_;
  }
  /// Charges what is there already, also beyond the limit: no more is given then until enough is
  /// back.
  void charge_anyway(std::uint64_t bytes);
  /// Ends the charge of `retired` memory, or of memory that could not be made.
  void finish_charge(std::uint64_t bytes, bool retired);

  /// Null where all segments are on the device. Its moves are followed by note_moved().
  SegmentBacking* backing() { return backing_.get(); }
  void note_moved() { mapped_version_.fetch_add(1); }

  /// What is mapped, slack included, by rising address: a range for each piece that is unmapped as
  /// a whole.
  std::vector<device::AddressRange> mapped() const;
  /// Changes whenever mapped() has grown. Any thread.
  std::uint64_t mapped_version() const { return mapped_version_.load(std::memory_order_acquire); }

  /// Gives back the slack around the segments, if the device had no memory for the last segment;
  /// else returns false. Requires: no unfinished work of the session.
  bool drop_slack();

  /// Frees everything but kept memory, which goes with the last let_go(). Requires: no unfinished
  /// work uses it. Afterwards only let_go(), charged() and the destructor may be called.
  void release();

 private:
  struct Segment {
    std::uint64_t bytes;
    std::uint64_t used;
    bool dedicated;        // whether it is for one large allocation
    bool leaving = false;  // whether it is only mapped until unmap_left()
    bool taken = false;    // whether take_left() has named it
  };
  using Segments = std::map<device::Address, Segment>;
  using Blocks = std::map<device::Address, std::uint64_t>;
  struct Kept {
    std::uint64_t count = 0;
    std::uint64_t freed_bytes = 0;  // 0: still live, or its free is not finished
  };

  MemoryManager(device::Device& device, std::uint64_t limit,
                std::unique_ptr<MemoryLedger::Account> account, MemoryNotes* notes,
                std::unique_ptr<SegmentBacking> backing)
      : device_(device),
        limit_(limit),
        account_(std::move(account)),
        backing_(std::move(backing)),
        slack_(device),
        notes_(notes) {}

  Result<void> map_past(const PastMemory::Segment& segment) SLATE_REQUIRES(mutex_);
  Result<void> back(device::AddressRange segment) SLATE_REQUIRES(mutex_);
  void unback(device::AddressRange segment) SLATE_REQUIRES(mutex_);
  bool is_on_device(device::Address segment) const SLATE_REQUIRES(mutex_);
  static std::uint64_t most(const device::Device& device, std::uint64_t limit,
                            SegmentBacking* backing);
  Result<void> map_past(const PastMemory& past) SLATE_REQUIRES(mutex_);
  bool forget_unused(const PastMemory::Segment& segment, const std::set<device::Address>& blocks)
      SLATE_REQUIRES(mutex_);
  void find_free_blocks(const Segments::value_type& segment) SLATE_REQUIRES(mutex_);
  void add_live(device::Address address, std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  enum class Around { kSlack, kNothing };  // what is mapped beside a segment
  Result<device::Address> allocate_dedicated(std::uint64_t bytes, Around around = Around::kSlack)
      SLATE_REQUIRES(mutex_);
  std::optional<device::Address> take_free_block(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  std::uint64_t left() const SLATE_REQUIRES(mutex_) {
    return limit_ - std::min(limit_, charged_ + outside_);
  }
  Result<device::Address> add_segment(std::uint64_t bytes, bool dedicated,
                                      Around around = Around::kSlack) SLATE_REQUIRES(mutex_);
  Result<void> take(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  void give(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  Result<void> grow_pool(std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  std::optional<device::Address> find_hole(std::uint64_t bytes, std::uint64_t apart) const
      SLATE_REQUIRES(mutex_);
  bool is_unmapped(device::AddressRange range) const SLATE_REQUIRES(mutex_);
  void put_slack(const Segments::value_type& segment) SLATE_REQUIRES(mutex_);
  void remove_slack(device::AddressRange segment) SLATE_REQUIRES(mutex_);
  Segments::iterator segment_of(device::Address address) SLATE_REQUIRES(mutex_);
  void insert_free_block(const Segments::value_type& segment, device::Address address,
                         std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  void erase_free_block(Blocks::iterator block) SLATE_REQUIRES(mutex_);
  bool keeps(const Segments::value_type& segment) const SLATE_REQUIRES(mutex_);
  void give_back(device::Address address, std::uint64_t bytes) SLATE_REQUIRES(mutex_);
  void drop_everything() SLATE_REQUIRES(mutex_);
  bool drop_segment(Segments::iterator segment) SLATE_REQUIRES(mutex_);
  void leave(Segments::iterator segment) SLATE_REQUIRES(mutex_);
  void unmap(Segments::iterator segment) SLATE_REQUIRES(mutex_);
  void forget_free_blocks(device::AddressRange range) SLATE_REQUIRES(mutex_);
  bool is_beside_segment(device::Address slack) const SLATE_REQUIRES(mutex_);
  bool drop_empty_segments() SLATE_REQUIRES(mutex_);

  device::Device& device_;
  const std::uint64_t limit_;
  const std::unique_ptr<MemoryLedger::Account> account_;
  const std::unique_ptr<SegmentBacking> backing_;  // may be null
  struct {
    std::function<bool()> when;
    std::function<void(device::AddressRange)> left;
  } later_;
  device::AddressRange arena_;
  std::uint64_t granularity_ = 0;
  mutable Mutex mutex_;
  CondVar freed_;
  std::uint64_t frees_finished_ SLATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t charged_ SLATE_GUARDED_BY(mutex_) = 0;  // bytes of the segments
  std::uint64_t outside_ SLATE_GUARDED_BY(mutex_) = 0;  // bytes of charge()
  std::uint64_t refusals_ SLATE_GUARDED_BY(mutex_) = 0;
  // Bytes outside that wait for running work.
  std::uint64_t outside_retired_ SLATE_GUARDED_BY(mutex_) = 0;
  Segments segments_ SLATE_GUARDED_BY(mutex_);
  Slack slack_ SLATE_GUARDED_BY(mutex_);  // slack before and behind segments, where there is room
  // Whether the device had no memory for the last segment.
  bool device_full_ SLATE_GUARDED_BY(mutex_) = false;
  bool refused_by_account_ SLATE_GUARDED_BY(mutex_) = false;  // by the last take()
  Blocks live_ SLATE_GUARDED_BY(mutex_);
  Blocks retired_ SLATE_GUARDED_BY(mutex_);
  std::map<device::Address, Kept> kept_ SLATE_GUARDED_BY(mutex_);
  bool released_ SLATE_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint64_t> mapped_version_{1};
  std::atomic<bool> has_left_{false};
  MemoryNotes* notes_ SLATE_GUARDED_BY(mutex_);              // null: none, or the session has ended
  std::set<device::Address> gaps_ SLATE_GUARDED_BY(mutex_);  // of kAlign bytes, behind blocks
  Blocks free_ SLATE_GUARDED_BY(mutex_);                     // by address
  // The same blocks.
  std::set<std::pair<std::uint64_t, device::Address>> by_size_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
