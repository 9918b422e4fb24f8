// Executor: carries out what the scheduler's policy decides. A session's thread brings a launch and
// waits here until the policy starts it; then the same thread launches it in the form, and on the
// SMs, that were decided. Ends of launches are seen by the completer, resizable launches are looked
// after by a thread of the executor's own, which sleeps when there are none.
//
// One mutex guards the policy, its view and the profiles; the only calls of the device under it are
// those that resize. A client's own mutex guards its lanes, whose workers other sessions' threads
// resize. Order: first the executor's, then a client's, then that of its streams.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/engine/form_launcher.h"
#include "daemon/engine/partitions.h"
#include "daemon/engine/profiled_launches.h"
#include "daemon/engine/stream_table.h"
#include "daemon/engine/trace.h"
#include "scheduler/policies.h"

namespace slate::daemon {

/// Launches that ran one behind the other on one stream: of one kernel, or of several short ones
/// that are known well. Its device time, if it is measured, is from its first launch's start to its
/// last one's end.
struct LaunchBatch {
  scheduler::Completion completion;
  std::shared_ptr<SharedEvent> start, end;  // null: not timed
  double expected_ms = 0, alone_ms = 0;     // of all its launches, see Grant
  // Of its launches, those that the policy's view counts, and their time; the others repeat these.
  std::uint32_t counted = 0;
  double counted_ms = 0;
  double filled = 0;             // part of the device that the view counts for it
  std::uint64_t repeats_at = 0;  // launches like these need no decision while this is changes_
  double full_ms = 0;            // no more launches when so much is expected of it
  bool mixes = false;            // may have launches of other kernels, too
  bool profiled = false;         // one launch, in the profile form
  double main_ms = 0;            // by which completion.main leads, see add()
  TraceLaunch trace;
  std::atomic<bool> ended{false};  // accounted for: more than one may see the end of a lane's

  /// One more launch, of these times.
  void add(scheduler::KernelId kernel, double expected, double alone);
  /// The same, of one that the policy's view counts.
  void add_counted(scheduler::KernelId kernel, double expected, double alone);
  /// Enough for one measurement.
  bool is_full() const;
};

struct ClientSpec {
  std::uint64_t session = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::string program;
  double weight = 1;
  int priority = 0;
  /// Called on the executor's thread or by the completer when a launch that could be called back
  /// has ended, and its stream may go on (LogicalStream::active_lanes). May be empty.
  std::function<void()> lane_ended = {};
  /// Asked on the session's thread while a launch waits: true when nobody wants it any more. Cheap.
  /// May be empty.
  std::function<bool()> lost_client = {};
};

/// For `slatectl status`.
struct ClientStatus {
  double weight = 1;
  int priority = 0;
  std::string kernel;  // of the newest launch; empty: nothing runs
  scheduler::Form form = scheduler::Form::kNative;
  std::uint32_t sms = 0;          // that it may use
  std::uint64_t blocks = 0;       // of the newest launch
  std::uint64_t blocks_done = 0;  // seen done; 0 for forms that do not show it
  bool waits = false;
};

/// Makes the policy, once the machine is known.
using PolicyMaker = std::function<std::unique_ptr<scheduler::Policy>(
    const scheduler::Machine& machine, scheduler::ProfileTable& profiles)>;
/// Requires: `name` is one of scheduler::policy_names().
PolicyMaker policy_maker(const std::string& name, const scheduler::Settings& settings);

class Executor {
 public:
  class Client;
  /// Rows of profiles that one session makes, and that there are (more than are kept on disk). Nor
  /// does a user make more than are left for others.
  static constexpr std::size_t kMostRowsOfSession = 2048, kMostRows = 40'000;

  /// All outlive it.
  Executor(device::Device& device, FormService& forms, Completer& completer, Trace& trace,
           const PolicyMaker& policy, const scheduler::Settings& settings);
  /// Requires: no client is left.
  ~Executor();

  /// `streams` and `group` are the session's; they outlive remove().
  std::shared_ptr<Client> add(ClientSpec spec, StreamTable& streams, Completer::Group& group);
  /// Any thread. The session is about to end: nothing waits for the policy any more, what can be
  /// called back is, and from its return on no workers are added to its launches.
  void abandon(Client& client);
  /// For launches that were called back for good. Requires: abandon() was called, and nothing of
  /// its runs any more.
  void drop_lanes(Client& client);
  /// Makes no partitions any more. Requires: no client is left.
  void stop_preparing() { partitions_.stop(); }
  /// Requires: none of its work is unfinished.
  void remove(const std::shared_ptr<Client>& client);

  // On the session's thread.
  /// kUnavailable after abandon(), kInvalidConfiguration beyond the device's limits. `spec`
  /// describes the launch as asked for.
  Result<void> launch(Client& client, FunctionRecord& kernel, const device::LaunchSpec& spec,
                      LogicalStream& stream);
  /// Before the thread goes to sleep: has the ends of all launches watched.
  void flush(Client& client);

  // Any thread.
  /// From now on until end_rest() was called as often, what can be called back stays off the
  /// device: for calls that would wait for it and hold up everybody (Device::StallHooks). Requires:
  /// the thread holds no client's mutex.
  void begin_rest();
  void end_rest();
  /// Calls `submit`, which puts work on `client`'s `stream` that is no launch but takes SMs, as
  /// fills and copies within the device do: where another's workers have all of them, they rest
  /// from the end of what the stream had before until it is done. At most half of the time; waits
  /// for that, milliseconds at most. The session's thread.
  Result<void> let_through(Client& client, device::Stream stream,
                           const std::function<Result<void>()>& submit);
  /// False if there is no such session.
  bool set(std::uint64_t session, double weight, int priority);
  std::optional<ClientStatus> status(std::uint64_t session) const;
  /// Null where no kernel is to have forms.
  FormMaker* form_maker() const { return forms_.maker(); }
  std::string_view policy_name() const { return policy_->name(); }
  std::string arrangement() const;  // in words
  const scheduler::Machine& machine() const { return partitions_.machine(); }
  /// Calls `use` with the profiles, under the mutex: it should copy and leave.
  void with_profiles(const std::function<void(scheduler::ProfileTable&)>& use);

 private:
  struct ActiveLane;
  struct LaneState;
  /// What a session had been granted when another was told to wait for it.
  struct Earlier {
    std::shared_ptr<Client> client;
    std::uint64_t start = 0;  // the newest
  };
  /// What the policy decided of a launch, and what was known of it then.
  struct Grant {
    scheduler::Start start;
    std::uint64_t number = 0;  // among all clients' starts
    scheduler::KernelId kernel = 0;
    double expected_ms = 0;      // in the form that was chosen
    double alone_ms = 0;         // by itself, in the best form
    bool is_long = false;        // or never measured
    bool known = false;          // its time is, well
    bool settled = false;        // and nothing is being tried
    bool by_itself = false;      // no other client was there
    std::uint32_t timed_of = 1;  // then every so many batches are timed
    bool repeats = false;        // launches like this one that follow need no decision for a while
    std::uint64_t changes = 0;
    // Blocks of the grid that it is for: all but for slices.
    std::uint64_t first = 0, count = 0;
    double part = 1;        // of the grid
    double filled = 1;      // part of the device that its blocks take at once
    bool profiled = false;  // natively, and counted if that can be done
    /// Whose work on the device is to be waited for there.
    std::vector<Earlier> others;
  };

  Client* find(std::uint64_t session) const;
  ProfileRecord& add_profile(Client& client, FunctionRecord& kernel,
                             const device::LaunchSpec& spec);
  double expected_ms(scheduler::KernelId kernel, scheduler::Form form, double part) const;
  bool worth_profiling(const scheduler::WaitingLaunch& launch, const scheduler::Start& start) const;
  void decide(scheduler::Time now);
  void grant(scheduler::Start start, scheduler::Time now);
  void show_start(const Client& client, const Grant& grant, std::uint64_t blocks,
                  scheduler::Time now);
  void count_repeats(Client& client);
  std::vector<Earlier> others_to_wait_for(Client& client);
  void resize(const scheduler::Resize& change, scheduler::Time now);
  std::optional<Grant> wait_for_grant(Client& client, const FunctionRecord& function,
                                      const LaunchShape& shape, scheduler::KernelId kernel,
                                      std::uint64_t started, bool stream_is_free);

  // executor_launch.cc, on the session's thread.
  void show_forms(const FunctionRecord& kernel, ProfileRecord& profile);
  bool may_repeat(const LogicalStream& stream, const ProfileRecord& profile,
                  const device::LaunchSpec& spec) const;
  Result<void> repeat(Client& client, FunctionRecord& kernel, const ProfileRecord& profile,
                      device::LaunchSpec spec, LogicalStream& stream);
  bool may_begin_again(const Client& client, const LogicalStream& stream,
                       const ProfileRecord& profile, const device::LaunchSpec& spec) const;
  Result<void> begin_again(Client& client, const FunctionRecord& kernel,
                           const ProfileRecord& profile, std::uint64_t blocks,
                           LogicalStream& stream, device::Stream target);
  Result<injector::Form> carry_out(Client& client, FunctionRecord& kernel,
                                   const device::LaunchSpec& spec, LogicalStream& stream,
                                   Grant grant, const LaunchShape& shape);
  Result<injector::Form> launch_profiled(const Client& client, FunctionRecord& kernel,
                                         const device::LaunchSpec& spec, LogicalStream& stream,
                                         const Grant& grant);
  bool is_filled_by_others(const Client& client) const;
  bool shares_sms(const Grant& grant) const;
  static bool may_mix(const Grant& grant);
  bool may_resize(Client& client, const LogicalStream& stream, const Grant& grant);
  bool has_room(const FunctionRecord& kernel, const device::LaunchSpec& spec,
                const LaunchShape& shape, const scheduler::Placement& placement) const;
  device::Partition partition_for(scheduler::Start& start);
  Result<void> prepare(Client& client, LogicalStream& stream, const Grant& grant,
                       const LaunchShape& shape, device::Partition partition);
  Result<injector::Form> launch_plain(const Client& client, FunctionRecord& kernel,
                                      const device::LaunchSpec& spec, LogicalStream& stream,
                                      const Grant& grant);
  Result<injector::Form> launch_lane(Client& client, FunctionRecord& kernel,
                                     const device::LaunchSpec& spec, LogicalStream& stream,
                                     const Grant& grant);
  WorkerQueue* queue_of(const Client& client, std::unique_ptr<WorkerQueue>& queue,
                        ControlMemory* memory);
  bool may_have_control(const Client& client, const LogicalStream& stream) const;
  static void wait_until_carried_out(const Earlier& other);
  Result<void> wait_for(const std::vector<Earlier>& others, device::Stream stream);

  // executor_batches.cc
  Result<void> open_batch(Client& client, LogicalStream& stream, const Grant& grant,
                          std::uint64_t blocks, device::Stream target);
  Result<void> mark_end(LaunchBatch& batch, device::Stream stream);
  void close_batch(Client& client, LogicalStream& stream,
                   Completer::Notice notice = Completer::Notice::kCheap);
  void batch_ended(const std::shared_ptr<LaunchBatch>& batch, const Result<void>& outcome);

  // executor_lanes.cc
  void run();
  Result<void> watch_lane(Client& client, device::Stream stream,
                          std::shared_ptr<LaunchBatch> batch);
  void look_after(const std::shared_ptr<Client>& client);
  Result<void> tend(Client& client, ActiveLane& lane, const LaneState& state);
  Result<void> tend_dispatched(Client& client, ActiveLane& lane, const LaneState& state);
  bool set_up_lanes();
  Result<LaneState> state_of(const WorkerLane& lane);
  bool has_begun(ActiveLane& lane);
  bool has_ended(const ActiveLane& lane);
  Result<void> show(ActiveLane& lane, const scheduler::Placement& placement);
  Result<void> apply(Client& client, ActiveLane& lane, const scheduler::Placement& placement);
  Result<void> supplement(Client& client, ActiveLane& lane, std::uint32_t missing);

  device::Device& device_;
  FormService& forms_;
  Completer& completer_;
  Trace& trace_;
  Partitions partitions_;
  ProfiledLaunches profiled_;
  scheduler::ProfileTable profiles_;
  std::unique_ptr<scheduler::Policy> policy_;
  const scheduler::Settings settings_;

  mutable std::mutex mutex_;  // guards the policy, the profiles and what follows
  std::map<std::uint32_t, std::size_t> rows_made_;  // of profiles, by user
  std::vector<scheduler::SessionView> views_;
  std::vector<std::shared_ptr<Client>> clients_;  // in the same order
  scheduler::Decisions decisions_;
  scheduler::Time again_ = scheduler::kNever;
  bool ending_ = false;
  std::atomic<std::uint64_t> next_launch_{1};
  std::uint64_t starts_ = 0;
  std::atomic<std::uint64_t> changes_{1};  // who is there, and with what weight; under the mutex
  std::condition_variable tick_;

  std::once_flag lanes_set_up_;
  device::Stream control_{};  // for tables and signals: never waits for kernels
  std::atomic<bool> lanes_active_{false};
  std::atomic<std::uint32_t> rests_{0};  // begun and not ended; read under a client's mutex
  std::atomic<std::uint32_t> lanes_{0};  // all clients'
  std::atomic<std::int64_t> let_through_from_ns_{0};
  // The executor's thread only, once registered.
  std::vector<std::uint32_t> probe_;  // where lanes' control blocks are read to
  bool probe_registered_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace slate::daemon
