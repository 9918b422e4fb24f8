// Executor::Client: one session as the executor sees it. Internal to executor*.cc.
#pragma once

#include <random>

#include "base/mutex.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/unended_starts.h"

namespace slate::daemon {

class Executor::Client {
 public:
  Client(ClientSpec client_spec, StreamTable& table, Completer::Group& ends)
      : spec(std::move(client_spec)), streams(table), group(ends) {}

  const ClientSpec spec;
  StreamTable& streams;
  Completer::Group& group;
  const std::shared_ptr<ControlMemory::Share> control = std::make_shared<ControlMemory::Share>();

  // Guarded by the executor's mutex.
  std::size_t index = 0;  // index in the policy's view
  std::optional<Grant> granted;
  CondVar granted_or_abandoned;
  std::atomic<bool> abandoned = false;        // written under it; by abandon() under both
  std::shared_ptr<const std::string> kernel;  // name of the newest launch's kernel; null: none yet
  std::uint64_t last_start = 0;               // number of its newest start, among all clients'
  std::uint64_t last_came = 0;                // number of its newest start or return to the device
  std::uint64_t waited_for = 0;  // others' starts up to this one are waited for on the device
  UnendedStarts unended;         // its starts that have not ended
  // The newest start that waits for others on the device: its number, its time, and the others.
  std::uint64_t chained = 0;
  scheduler::Time chained_at{};
  std::vector<Earlier> chained_to;

  /// Number of its newest start that is on the device or was refused by it. Writer: session thread.
  std::atomic<std::uint64_t> carried_out = 0;

  // Session thread only.
  TraceLaunch waiting;               // the newest launch
  std::uint32_t again = 0;           // batches that may still begin as `settled` says
  std::optional<Grant> settled;      // newest grant that may be repeated
  std::vector<LogicalStream*> open;  // streams with a batch that is not closed
  std::vector<std::shared_ptr<LaunchBatch>> repeated;  // may have launches outside of the view
  std::size_t rows = 0;                                // rows of profiles that it made
  std::uint32_t untimed = 0;  // batches of settled kernels so far, timed or not
  /// A factor of 0.75 to 1.25 for the length of a batch. With even lengths, each batch would begin
  /// with the same kernel of a program that launches several in turn.
  double uneven() { return std::uniform_real_distribution(0.75, 1.25)(random); }
  std::minstd_rand random;

  mutable Mutex mutex;
  std::deque<ActiveLane> lanes SLATE_GUARDED_BY(mutex);
  bool gone SLATE_GUARDED_BY(mutex) = false;  // whether its streams are about to be destroyed
};

}  // namespace slate::daemon
