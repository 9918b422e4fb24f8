// WorkerQueue: worker-form launches that run one after another, and the control block that they
// share. A launch is one call of the device; the workers clean the control block behind
// them. While one runs, its placement can be changed, and workers be added or called back.
//
// The host starts the workers, or the dispatch kernel on the device does (docs/dispatch.md). Then
// no workers can be added: an empty table, and then one with more room, brings them all anew.
//
// One thread at a time. The streams must carry nothing but work that may wait for these launches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/dispatch/dispatch_state.h"
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

  /// `dispatches`: with room for a DispatchState behind each control block.
  static Result<std::unique_ptr<ControlMemory>> create(device::Device& device,
                                                       bool dispatches = false);
  ~ControlMemory();

  /// Address of a slot, with anything in it. kLimit when all are taken, or the share is.
  Result<device::Address> take(Share& share);
  /// Requires: no unfinished work uses it.
  void give_back(device::Address slot, Share& share);
  /// Whether take() would give one now.
  bool has_slot_for(const Share& share) const;
  std::uint32_t sm_count() const { return sm_count_; }
  bool dispatches() const { return dispatches_; }

 private:
  ControlMemory(device::Device& device, device::AddressRange range, std::uint32_t sm_count,
                bool dispatches);

  device::Device& device_;
  const device::AddressRange range_;
  const std::uint32_t sm_count_;
  const bool dispatches_;
  struct Slots;
  const std::unique_ptr<Slots> slots_;
};

/// What a launch of a rewritten kernel needs to know of it.
struct FormLaunch {
  device::LaunchSpec spec;             // function: the form's; grid and parameters: the user's
  std::uint32_t parameter_offset = 0;  // of slate's own parameter, the last one
  device::Function dispatch{};         // its dispatch kernel; 0: the host starts the workers
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

/// What a dispatch kernel has told of the last launch.
struct DispatchProgress {
  bool begun = false;   // the launch's state has reached the device; else the rest is not known
  bool nobody = false;  // no worker is there, nor to come
  DispatchOutcome outcome = kDispatchRunning;
  std::uint32_t error = 0;  // cudaError_t, of a failed one
  std::uint32_t epochs = 0;
  std::uint32_t exit_target = 0;
};

/// For measurements of the dispatch kernel.
struct DispatchOptions {
  bool wait_for_room = true;
  std::uint32_t most_epochs = 0;  // 0: as many as it takes
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

  // Launches by the device. `control` is that of resize().
  /// Whether the dispatch kernel starts the last launch's workers.
  bool by_device() const { return dispatch_ != device::Function{}; }
  /// Has the dispatch kernel leave when the last worker of its epoch has: what waits for the
  /// stream may go on then. To be told again until it has, if the launch may not have begun.
  Result<void> stop(device::Stream control);
  /// Starts the dispatch kernel again on what is left to do. Requires: it was seen to have stopped.
  Result<void> dispatch_again(device::Stream control);
  /// The host starts the workers of this launch from now on. Requires: the dispatch was seen to
  /// have failed, with nobody there. Then resume() goes on.
  void take_over(const DispatchProgress& progress);
  /// By the words of the control block and what stands behind it; only where by_device().
  DispatchProgress dispatch_progress(std::span<const std::uint32_t> control) const;
  /// Of the control block, and the part of the DispatchState behind it that is looked at.
  std::uint64_t watched_bytes() const;
  void set_dispatch_options(const DispatchOptions& options) { options_ = options; }

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
  /// A table or a state as it is copied to the device; free again when the copy has ended.
  struct HostCopy {
    std::vector<std::byte> bytes;
    device::Event copied{};
    bool registered = false;
  };
  using HostCopies = std::vector<std::unique_ptr<HostCopy>>;

  Result<void> start(std::uint32_t workers, std::uint32_t flags, device::Stream stream);
  Result<void> write_state(const FormLaunch& launch, bool is_static, bool stopped);
  Result<void> start_dispatch();
  device::Address state_address() const;
  Result<HostCopy*> free_copy(HostCopies& copies, std::size_t bytes);
  void allow(const WorkerTable& table);
  Result<device::Event> write_table(const WorkerTable& table, device::Stream stream);

  device::Device& device_;
  ControlMemory& memory_;
  const std::shared_ptr<ControlMemory::Share> share_;
  device::Address control_ = 0;
  std::uint32_t next_generation_ = 0;
  bool counts_arrivals_ = true;  // the host started all workers so far
  std::uint32_t started_ = 0;    // workers, in all, as ControlBlock::kArrivedOffset counts them
  HostCopies tables_, states_;
  std::optional<device::Event> cleared_;  // of dispatch_again()
  DispatchOptions options_;
  /// Of the last launch: its newest table's copy, which may come when the workers have gone.
  std::optional<device::Event> resized_;
  // The last launch:
  WorkerTable allowed_;  // its newest table, with no more than fit
  std::uint32_t room_gained_ = 0;
  std::uint32_t most_per_sm_ = 0;  // that fit
  device::Function dispatch_{};    // 0: the host starts its workers
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
