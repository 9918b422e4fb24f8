// WorkerQueue: worker-form launches that run one after another, and the control block that they
// share. A launch is one call of the device; the workers clean the control block behind
// them. While one runs, its placement can be changed, and workers be added or called back.
//
// One thread at a time. The streams must carry nothing but work that may wait for these launches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/dispatch/grid_tasks.h"
#include "device/device.h"

namespace slate::daemon {

/// Workers allowed on each SM, by SM number.
using WorkerTable = std::vector<std::uint32_t>;

/// Device memory for control blocks: one piece, a slot of it per queue. Any thread.
class ControlMemory {
 public:
  /// What one session has of it: never more than is left for the others.
  class Share {
    friend class ControlMemory;
    std::size_t slots_ = 0;  // guarded by the memory's mutex
  };

  static Result<std::unique_ptr<ControlMemory>> create(device::Device& device);
  ~ControlMemory();

  /// Address of a slot, with anything in it. kLimit when all are taken, or the share is.
  Result<device::Address> take(Share& share);
  /// Requires: no unfinished work uses it.
  void give_back(device::Address slot, Share& share);
  /// Whether take() would give one now.
  bool has_slot_for(const Share& share) const;
  std::uint32_t sm_count() const { return sm_count_; }

 private:
  ControlMemory(device::Device& device, device::AddressRange range, std::uint32_t sm_count);

  device::Device& device_;
  const device::AddressRange range_;
  const std::uint32_t sm_count_;
  struct Slots;
  const std::unique_ptr<Slots> slots_;
};

/// What a launch of a rewritten kernel needs to know of it.
struct FormLaunch {
  device::LaunchSpec spec;             // function: the form's; grid and parameters: the user's
  std::uint32_t parameter_offset = 0;  // of slate's own parameter, the last one
  std::uint32_t workers_per_sm = 1;    // blocks of this shape that are to be there
  /// Started in addition: the table has no place for them. Where an SM is full of others' blocks
  /// just then, two may come to the next one, of which one leaves.
  std::uint32_t spares_per_sm = 0;
  std::uint32_t sms = 0;  // that the stream's partition has; 0: all
  bool independent_blocks = false;
  bool prefetch = true;                 // fetch the next task while one runs: not for long ones
  std::optional<TaskSizes> task_sizes;  // default_task_sizes() else
  /// The workers wait for it; the table, if there is one, is written at once.
  std::optional<device::Event> after;
};

class WorkerQueue {
 public:
  /// `device` and `memory` outlive it. Null: a share of its own.
  WorkerQueue(device::Device& device, ControlMemory& memory,
              std::shared_ptr<ControlMemory::Share> share = nullptr);
  /// Requires: its launches have finished, with all that was added to them. Waits for copies of
  /// tables, which go beside kernels.
  ~WorkerQueue();
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;

  /// Takes a control block, cleaned by `stream`, unless it has one; launch() would do the same.
  /// Who looks at its words before the launch has begun must wait for that. True if it was done
  /// now, kLimit if none is left.
  Result<bool> prepare(device::Stream stream);
  /// Starts the kernel's workers on `stream`: on all its SMs, or as `table` says. Requires:
  /// can_be_numbered(grid), and `stream` runs this after the launch before, with all that was added
  /// to it; that launch has not been called back for good.
  Result<void> launch(const FormLaunch& launch, device::Stream stream,
                      const WorkerTable* table = nullptr);

  /// Writes a new table, by way of `control` (a stream that does not wait for ours). Workers beyond
  /// it leave when they have finished their tasks. The next launch() waits for the copy, on the
  /// device; `control` is the same for all resizes between two launches.
  Result<void> resize(const WorkerTable& table, device::Stream control);
  /// Adds up to `workers` workers to the running launch, on stream `stream`; they leave at once if
  /// it has finished, or where the placement has no room. While the SMs are full they wait, in
  /// front of whoever comes to these SMs later: no more should be added than there is room for.
  Result<void> supplement(std::uint32_t workers, device::Stream stream);
  /// Workers for which the newest table has room and the one before had not.
  std::uint32_t room_gained() const { return room_gained_; }
  /// Workers that could be added to the running launch: for which the newest table has room beside
  /// those who are there or still to come, and for whom there are tasks; by the words of the
  /// control block.
  std::uint32_t room_left(std::span<const std::uint32_t> control) const;
  /// After a full retreat, when no worker is left: starts workers again on what is left to do.
  Result<void> resume();
  /// Whether all copies of tables have ended: one under way would come over the table of the
  /// control block's next owner.
  bool tables_copied() const;

  /// Blocks of the last launch that come before this task, for telling how far it has come.
  std::uint64_t blocks_before(std::uint32_t task) const;
  device::AddressRange control() const;  // empty before the first launch
  /// Where the last worker of each launch leaves its Signal: 8 bytes.
  device::Address signal_address() const {
    return control_ + injector::ControlBlock::kSignalOffset;
  }
  /// Ends of workers that the last launch's end, or full retreat, takes.
  std::uint32_t exit_target() const { return parameters_.exit_target; }
  /// The Signal of the last launch, once it has ended.
  std::uint64_t expected_signal(injector::Signal signal) const {
    return injector::make_signal(parameters_.generation, signal);
  }

 private:
  /// A table as it is copied to the device; free again when the copy has ended.
  struct HostTable {
    std::vector<std::uint16_t> withheld;
    device::Event copied{};
    bool registered = false;
  };

  Result<void> start(std::uint32_t workers, std::uint32_t flags, device::Stream stream);
  Result<HostTable*> free_table();
  void allow(const WorkerTable& table);
  Result<device::Event> write_table(const WorkerTable& table, device::Stream stream);

  device::Device& device_;
  ControlMemory& memory_;
  const std::shared_ptr<ControlMemory::Share> share_;
  device::Address control_ = 0;
  std::uint32_t next_generation_ = 0;
  std::uint32_t started_ = 0;  // workers, in all, as ControlBlock::kArrivedOffset counts them
  std::vector<std::unique_ptr<HostTable>> tables_;
  /// Of the last launch: its newest table's copy, which may come when the workers have gone.
  std::optional<device::Event> resized_;
  // The last launch:
  WorkerTable allowed_;  // its newest table, with no more than fit
  std::uint32_t room_gained_ = 0;
  std::uint32_t most_per_sm_ = 0;  // that fit
  injector::LaunchParameters parameters_;
  device::LaunchSpec spec_;
  std::vector<std::byte> packed_;  // the user's parameters and, behind them, ours
  std::uint32_t parameter_offset_ = 0;
  std::uint32_t workers_ = 0;
  device::Stream stream_{};
};

/// The slice form: launches blocks [first, first + count) of a grid, counted in its own order.
/// Requires: can_be_numbered(grid).
Result<void> launch_slice(device::Device& device, const FormLaunch& launch, std::uint64_t first,
                          std::uint64_t count, device::Stream stream);

}  // namespace slate::daemon
