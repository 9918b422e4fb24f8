// FenceMemory: the fence tables and records of an engine's sessions (injector/fence/fence_table.h),
// and whether kernels have to be fenced at present. The tables are device memory of the engine's
// own, the records memory that the host reads at once. Thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/engine/own_copies.h"
#include "daemon/fence_choice.h"
#include "device/device.h"
#include "injector/fence/fence_table.h"

namespace slate::daemon {

class FenceMemory {
 public:
  /// One session's table and record.
  struct Slot {
    device::AddressRange table, record;
    /// The record, as this process sees it.
    injector::FenceRecord* seen = nullptr;
  };
  /// What hears of memory that is about to be unmapped.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// No kernel that begins from now on may touch the range. Any thread.
    virtual void forget(device::AddressRange range) = 0;
  };

  /// `device` outlives it.
  FenceMemory(device::Device& device, FenceChoice choice, UnfencedChoice unfenced)
      : device_(device),
        choice_(choice),
        unfenced_(unfenced),
        on_(choice == FenceChoice::kAlways),
        copies_(device) {}
  /// Requires: all slots were given back.
  ~FenceMemory();
  FenceMemory(const FenceMemory&) = delete;
  FenceMemory& operator=(const FenceMemory&) = delete;

  /// Tells which users' sessions there are, and whether others' come. kAuto fences kernels where
  /// there are or were several: kernels leave behind what others may find. True: it does so from
  /// now on.
  bool add_users(const std::set<uid_t>& users, bool others_come = false);
  /// Whether kernels that are launched now have to be fenced.
  bool is_on() const { return on_.load(std::memory_order_relaxed); }
  /// Whether a kernel that cannot be fenced runs all the same.
  bool lets_unfenced_run() const { return unfenced_ != UnfencedChoice::kRefuse; }
  /// Whether a session that loads code without PTX is to leave other users' sessions.
  bool moves_unfenced() const { return unfenced_ == UnfencedChoice::kMove; }

  /// Kernels that were fenced, and those that could not be. Each counts once a session.
  struct Counts {
    std::uint64_t fenced = 0, unfenced = 0;
    std::uint64_t launches = 0, bounded = 0;  // behind the fence; those in a bounded copy
  };
  void count(bool fenced) { (fenced ? fenced_ : not_fenced_).fetch_add(1); }
  void count_launch(bool bounded) {
    (bounded ? bounded_ : checked_).fetch_add(1, std::memory_order_relaxed);
  }
  Counts counts() const {
    return {.fenced = fenced_.load(),
            .unfenced = not_fenced_.load(),
            .launches = checked_.load() + bounded_.load(),
            .bounded = bounded_.load()};
  }
  FenceChoice choice() const { return choice_; }

  /// A slot with an empty table and a free record. `listener` hears until give_back(). Errors:
  /// kOutOfMemory, those of the device.
  Result<Slot> take(Listener& listener);
  /// Requires: no unfinished work uses the slot.
  void give_back(const Slot& slot, Listener& listener);
  /// Passes Listener::forget() on.
  void forget(device::AddressRange range);

  /// One piece of device memory to be written.
  struct Write {
    device::Address to = 0;
    std::span<const std::byte> bytes;
  };
  /// Writes the pieces in their order, and returns when all are there. Kernels may run meanwhile.
  Result<void> write(std::span<const Write> writes);

 private:
  static constexpr std::uint64_t kTableBytes = 128 << 10;
  static_assert(sizeof(injector::FenceTable) <= kTableBytes);

  /// Memory for the tables of several sessions, and for their records.
  struct Piece {
    device::AddressRange tables, records;
  };

  Result<void> add_piece() SLATE_REQUIRES(mutex_);
  Result<device::Address> map_records(std::uint64_t bytes);

  device::Device& device_;
  const FenceChoice choice_;
  const UnfencedChoice unfenced_;
  std::atomic<bool> on_;
  std::atomic<std::uint64_t> fenced_{0}, not_fenced_{0};
  std::atomic<std::uint64_t> bounded_{0}, checked_{0};  // launches
  Mutex mutex_;
  std::set<uid_t> users_ SLATE_GUARDED_BY(mutex_);  // that have had sessions
  std::vector<Piece> pieces_ SLATE_GUARDED_BY(mutex_);
  std::vector<Slot> free_ SLATE_GUARDED_BY(mutex_);
  Mutex listeners_mutex_;
  std::set<Listener*> listeners_ SLATE_GUARDED_BY(listeners_mutex_);
  Mutex write_mutex_;
  OwnCopies copies_ SLATE_GUARDED_BY(write_mutex_);
};

}  // namespace slate::daemon
