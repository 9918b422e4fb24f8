// Executor::Client: one session as the executor sees it. Internal to executor*.cc.
#pragma once

#include <random>

#include "daemon/engine/executor.h"

namespace slate::daemon {

/// A resizable launch that has not been seen to end. At most one a lane, in the order of launching.
struct Executor::ActiveLane {
  WorkerLane* lane = nullptr;
  LogicalStream* stream = nullptr;
  std::shared_ptr<LaunchBatch> batch;
  std::shared_ptr<SharedEvent> begin;  // of its launch: what its stream had before has ended
  scheduler::Placement placement;
  std::uint64_t finished = 0;   // what its signal is then
  std::uint64_t retreated = 0;  // what its signal is when no worker is left
  bool begun = false;           // seen so: what its stream had before has ended
  std::uint32_t added = 0;      // times that workers were, since its placement has changed
  scheduler::Time add_again{};  // not before
  // By the dispatch kernel only, to which no workers can be added:
  bool grows = false;    // its placement has more room than there may be workers for
  bool emptied = false;  // for that: its table is empty until the last worker has left
};

class Executor::Client {
 public:
  Client(ClientSpec client_spec, StreamTable& table, Completer::Group& ends)
      : spec(std::move(client_spec)), streams(table), group(ends) {}

  const ClientSpec spec;
  StreamTable& streams;
  Completer::Group& group;
  const std::shared_ptr<ControlMemory::Share> control = std::make_shared<ControlMemory::Share>();

  // Guarded by the executor's mutex.
  std::size_t index = 0;  // of its view
  std::optional<Grant> granted;
  std::condition_variable granted_or_abandoned;
  std::atomic<bool> abandoned = false;        // writer: under the mutex; abandon(): both
  std::shared_ptr<const std::string> kernel;  // name of the newest launch's; null before it
  std::uint64_t last_start = 0;               // number of its newest start, among all clients'
  std::uint64_t last_came = 0;                // likewise, or that it was put back on the device
  std::uint64_t waited_for = 0;  // starts of others up to this one are waited for on the device

  /// Its newest start that is on the device, or was refused by it. Written by the session's thread.
  std::atomic<std::uint64_t> carried_out = 0;

  // Session thread only.
  TraceLaunch waiting;               // the newest launch
  std::uint32_t again = 0;           // so many more batches may begin as `settled` said
  std::optional<Grant> settled;      // the newest grant that is to be repeated so
  std::vector<LogicalStream*> open;  // with a batch that is not closed
  std::vector<std::shared_ptr<LaunchBatch>> repeated;  // may have launches that the view lacks
  std::size_t rows = 0;                                // of profiles, that it made
  std::uint32_t untimed = 0;  // batches of settled kernels so far, timed or not
  /// 0.75 to 1.25: batches of even lengths would always begin with the same kernel of a program
  /// that launches several in turn.
  double uneven() { return std::uniform_real_distribution(0.75, 1.25)(random); }
  std::minstd_rand random;

  std::mutex mutex;  // guards what follows
  std::deque<ActiveLane> lanes;
  bool gone = false;  // its streams are about to be destroyed
};

}  // namespace slate::daemon
