// WorkerQueue: worker-form launches that run one after another, and the control block that they
// share. A launch is one call of the device; its workers clean the control block when they leave.
// While it runs, its placement can be changed, and workers be added or called back.
//
// The host starts the workers, or the dispatch kernel on the device does (docs/dispatch.md). The
// dispatch kernel takes no additional workers. Instead an empty table, and then a larger one, makes
// it start all of them again.
//
// One thread at a time. Requires: the streams carry only work that may wait for these launches.
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

/// Device memory for control blocks: one piece with a slot for each queue. Any thread.
class ControlMemory {
 public:
  /// The slots of one session: at most as many as are left for the others.
  class Share {
    friend class ControlMemory;
    std::size_t slots_ = 0;  // guarded by the memory's mutex
  };

  /// `dispatches`: whether a DispatchState has room behind each control block.
  static Result<std::unique_ptr<ControlMemory>> create(device::Device& device,
                                                       bool dispatches = false);
  ~ControlMemory();

  /// Address of a slot, with undefined contents. kLimit when all slots are taken, or the share is.
  Result<device::Address> take(Share& share);
  /// Requires: no unfinished work uses the slot.
  void give_back(device::Address slot, Share& share);
  /// Whether take() would return a slot now.
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

/// One launch of a rewritten kernel.
struct FormLaunch {
  device::LaunchSpec spec;             // function: the form's; grid and parameters: the user's
  std::uint32_t parameter_offset = 0;  // offset of slate's own parameter, the last one
  device::Function dispatch{};         // its dispatch kernel; 0: the host starts the workers
  std::uint32_t workers_per_sm = 1;    // blocks of this shape that an SM should hold
  /// Workers started in addition, without a place in the table. Where others' blocks fill an SM at
  /// that time, two workers may come to the next SM; one of them leaves.
  std::uint32_t spares_per_sm = 0;
  std::uint32_t sms = 0;  // SMs of the stream's partition; 0: all
  bool independent_blocks = false;
  bool prefetch = true;  // whether to fetch the next task while one runs; not for long tasks
  std::optional<TaskSizes> task_sizes;  // nothing: default_task_sizes()
  /// Event that the workers wait for; the table, if there is one, is written at once.
  std::optional<device::Event> after;
  /// Stream through which the launch may be resized before it has begun. What is written for it
  /// comes ahead of that, also where the launch's stream waits for long. Requires: a table, and the
  /// queue's launch before has ended.
  std::optional<device::Stream> control;
};

/// What a dispatch kernel has reported of the last launch.
struct DispatchProgress {
  bool begun = false;   // the launch's state has reached the device; else the rest is unknown
  bool nobody = false;  // no worker is on the device, and none will come
  DispatchOutcome outcome = kDispatchRunning;
  std::uint32_t error = 0;  // cudaError_t of a failed dispatch
  std::uint32_t epochs = 0;
  std::uint32_t exit_target = 0;
};

/// Options for measurements of the dispatch kernel.
struct DispatchOptions {
  bool wait_for_room = true;
  std::uint32_t most_epochs = 0;  // 0: no limit
};

class WorkerQueue {
 public:
  /// `device` and `memory` outlive it. No share: it makes its own.
  WorkerQueue(device::Device& device, ControlMemory& memory,
              std::shared_ptr<ControlMemory::Share> share = nullptr);
  /// Requires: its launches have finished, with all workers that were added. Waits for copies of
  /// tables, which run beside kernels.
  ~WorkerQueue();
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;

  /// Starts the kernel's workers on `stream`: on all its SMs, or as `table` says. Errors: kLimit
  /// when no control block is left.
  /// Requires:
  /// - can_be_numbered(grid),
  /// - `stream` runs this after the launch before, with all workers that were added to it,
  /// - that launch was not called back for good.
  Result<void> launch(const FormLaunch& launch, device::Stream stream,
                      const WorkerTable* table = nullptr);

  /// Writes a new table through `control`, a stream that does not wait for ours. Workers beyond the
  /// table leave when they have finished their tasks. On the device, the next launch() waits for
  /// the copy. Requires: one `control` for all resizes between two launches, which the launch was
  /// told (FormLaunch::control) or has begun before.
  Result<void> resize(const WorkerTable& table, device::Stream control);
  /// Adds up to `workers` workers to the running launch, on `stream`. They leave at once if the
  /// launch has finished, or the placement has no room. While the SMs are full they wait, ahead of
  /// blocks that come to these SMs later: add no more than there is room for.
  Result<void> supplement(std::uint32_t workers, device::Stream stream);
  /// Workers that fit the newest table and did not fit the one before.
  std::uint32_t room_gained() const { return room_gained_; }
  /// Workers that could be added to the running launch, by the words of its control block. They fit
  /// the newest table beside the workers that are there or still come, and there are tasks for
  /// them.
  std::uint32_t room_left(std::span<const std::uint32_t> control) const;
  /// Starts workers again for the blocks that are left. Requires: a full retreat has ended.
  Result<void> resume();

  // Launches by the device. `control` is the same as resize()'s.
  /// Whether the dispatch kernel starts the last launch's workers.
  bool by_device() const { return dispatch_ != device::Function{}; }
  /// Has the dispatch kernel leave when the last worker of its epoch has left. Work that waits for
  /// the stream may go on then. Requires: as resize().
  Result<void> stop(device::Stream control);
  /// Starts the dispatch kernel again for the blocks that are left. Requires: it was seen to have
  /// stopped.
  Result<void> dispatch_again(device::Stream control);
  /// From now on the host starts the workers of this launch; resume() goes on. Requires: the
  /// dispatch was seen to have failed, and no worker is left.
  void take_over(const DispatchProgress& progress);
  /// Reads the words of the control block and of what stands behind it. Requires: by_device().
  DispatchProgress dispatch_progress(std::span<const std::uint32_t> control) const;
  /// Size of the control block and of the part of DispatchState that is read back.
  std::uint64_t watched_bytes() const;
  void set_dispatch_options(const DispatchOptions& options) { options_ = options; }

  /// Whether all copies of tables have ended. A late copy would overwrite the table of the control
  /// block's next owner.
  bool tables_copied() const;

  /// Blocks of the last launch that come before this task: how far the launch has come.
  std::uint64_t blocks_before(std::uint32_t task) const;
  device::AddressRange control() const;  // empty before the first launch
  /// Where the last worker of each launch writes its Signal: 8 bytes.
  device::Address signal_address() const {
    return control_ + injector::ControlBlock::kSignalOffset;
  }
  /// The number of workers' ends at which the last launch ends or has retreated.
  std::uint32_t exit_target() const { return parameters_.exit_target; }
  /// The Signal of the last launch after its end.
  std::uint64_t expected_signal(injector::Signal signal) const {
    return injector::make_signal(parameters_.generation, signal);
  }

 private:
  /// Host memory of a table or state under way to the device; free again after the copy.
  struct HostCopy {
    std::vector<std::byte> bytes;
    device::Event copied{};
    bool registered = false;
  };
  using HostCopies = std::vector<std::unique_ptr<HostCopy>>;

  Result<void> take_control_block(device::Stream stream);
  void describe(const FormLaunch& launch, bool is_static);
  Result<void> start(std::uint32_t workers, std::uint32_t flags, device::Stream stream);
  Result<void> write_state(const FormLaunch& launch, bool is_static, bool stopped,
                           device::Stream stream);
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
  bool counts_arrivals_ = true;  // whether the host started all workers so far
  std::uint32_t started_ = 0;    // workers in all, as ControlBlock::kArrivedOffset counts
  HostCopies tables_, states_;
  std::optional<device::Event> cleared_;  // event of dispatch_again()
  DispatchOptions options_;
  /// Event of the copy of the last launch's newest table, which may come after its workers.
  std::optional<device::Event> resized_;
  // The last launch:
  WorkerTable allowed_;  // its newest table, capped at what fits
  std::uint32_t room_gained_ = 0;
  std::uint32_t most_per_sm_ = 0;  // workers that fit on an SM
  device::Function dispatch_{};    // 0: the host starts its workers
  injector::LaunchParameters parameters_;
  device::LaunchSpec spec_;
  std::vector<std::byte> packed_;  // the user's parameters, then slate's
  std::uint32_t parameter_offset_ = 0;
  std::uint32_t workers_ = 0;
  device::Stream stream_{};
};

/// Launches the slice form of blocks [first, first + count) of a grid, in the grid's own order.
/// Requires: can_be_numbered(grid).
Result<void> launch_slice(device::Device& device, const FormLaunch& launch, std::uint64_t first,
                          std::uint64_t count, device::Stream stream);

}  // namespace slate::daemon
