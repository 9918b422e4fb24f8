// LaneSteering: what is done on the device to resizable launches that run. It changes their SMs,
// calls them back, puts them on the device again, and reads how far they have come. The executor
// says when, and has the ends of what is launched here watched.
//
// A lane belongs to a session. Requires of every method that gets a lane: the mutex of its session
// is held (Executor::Client).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/engine/launch_batch.h"
#include "daemon/engine/partitions.h"
#include "daemon/engine/stream_table.h"

namespace slate::daemon {

/// A resizable launch that has not been seen to end. At most one for each lane, in the order of
/// launching.
struct ActiveLane {
  WorkerLane* lane = nullptr;
  LogicalStream* stream = nullptr;
  std::shared_ptr<LaunchBatch> batch;
  std::shared_ptr<SharedEvent> begin;  // event of its begin: the work before it has ended
  scheduler::Placement placement;
  std::optional<scheduler::Time> called_off{};  // when it was told to leave; none: it may stay
  bool left = false;  // whether no worker of it was on the device when last seen called off
  std::uint64_t finished = 0;   // value of its signal after its end
  std::uint64_t retreated = 0;  // value of its signal when no worker is left
  bool begun = false;           // whether its begin was seen
  std::uint32_t added = 0;      // times that workers were added since its last placement
  scheduler::Time add_again{};  // earliest time to add workers again
  // For launches by the dispatch kernel, to which no workers can be added:
  bool grows = false;    // whether its placement may have room for more workers
  bool emptied = false;  // whether its table is empty until the last worker has left
};

class LaneSteering {
 public:
  /// A lane that may need workers is tended this often.
  static constexpr std::chrono::milliseconds kTick{1};
  /// A control block's words, as read.
  struct State {
    std::uint32_t next_task = 0;
    std::uint64_t signal = 0;
    std::uint32_t ended = 0;      // workers that have left
    std::uint32_t room_left = 0;  // for more workers
    /// Whether no worker that was added before these words were read still comes. It would not know
    /// the workers that resume() starts, and could take itself for the last one.
    bool nobody_joins = false;
    /// Where the dispatch kernel starts the workers.
    std::optional<DispatchProgress> dispatch;
  };
  /// The device stream on which workers were launched, to be watched by the caller; Stream{}: none.
  using Launched = Result<device::Stream>;

  /// All outlive it.
  LaneSteering(device::Device& device, const Partitions& partitions, Trace& trace)
      : device_(device), partitions_(partitions), trace_(trace) {}
  ~LaneSteering();
  LaneSteering(const LaneSteering&) = delete;
  LaneSteering& operator=(const LaneSteering&) = delete;

  /// Makes what resizing needs, with the first resizable launch. False if that fails. Any thread.
  bool set_up();

  // Requires from here on: set_up() was true, or there is no lane.
  /// The stream of everything that is written for lanes, in the order of the calls.
  device::Stream control() const { return control_; }
  /// The table that a launch begins with; without SMs during a rest.
  WorkerTable first_table(const scheduler::Placement& placement) const;
  /// Whether the work before it on its stream has ended, as far as is known now.
  bool has_begun(ActiveLane& lane);
  /// For a lane whose workers have finished: its launch's own end follows at once, and is its
  /// time's.
  bool has_ended(const ActiveLane& lane);
  /// Reads a control block, beside the work on the device. The executor's thread only.
  Result<State> state_of(const WorkerLane& lane);
  /// Notes since when the lane is called off, and whether its workers have left. `abandoned`:
  /// whether its session has gone.
  static void note_leaving(ActiveLane& lane, const State& state, bool abandoned);
  /// Gives the lane other SMs, and adds workers where it has more room than before. `streams` are
  /// those of its session.
  Launched apply(StreamTable& streams, ActiveLane& lane, const scheduler::Placement& placement);
  /// Does what a lane needs that has begun and not finished.
  Launched tend(StreamTable& streams, ActiveLane& lane, const State& state);
  /// As tend(), for a lane whose session has gone. Nobody wants the rest. The control block, which
  /// is not clean then, is given back with the lane and cleaned by its next user.
  Result<void> give_up(ActiveLane& lane);

  // During a rest no lane's workers are on the device.
  /// One rest more. Returns whether it is the only one: the caller takes all lanes off then. A
  /// lane that begins after this call begins with an empty table.
  bool begin_rest() { return rests_.fetch_add(1) == 0; }
  /// One rest less. Returns whether it was the last one: the caller puts all lanes back then.
  bool end_rest() { return rests_.fetch_sub(1) == 1; }
  /// Requires: the lane's placement is not empty.
  Result<void> take_off(ActiveLane& lane) { return show(lane, {}); }
  Result<void> put_back(ActiveLane& lane);

 private:
  Result<void> show(ActiveLane& lane, const scheduler::Placement& placement);
  Launched supplement(StreamTable& streams, ActiveLane& lane, std::uint32_t missing);
  Launched tend_dispatched(ActiveLane& lane, const State& state);

  device::Device& device_;
  const Partitions& partitions_;
  Trace& trace_;
  std::once_flag set_up_;
  device::Stream control_{};             // stream for tables and signals; never waits for kernels
  std::atomic<std::uint32_t> rests_{0};  // rests that have not ended
  // The executor's thread only, once registered.
  std::vector<std::uint32_t> probe_;  // host memory into which lanes' control blocks are read
  bool probe_registered_ = false;
};

}  // namespace slate::daemon
