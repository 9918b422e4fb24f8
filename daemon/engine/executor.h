// Executor: carries out what the scheduler's policy decides. A session's thread brings a launch,
// and waits here until the policy starts it. Then the same thread launches it in the form and on
// the SMs of the decision. The completer sees the ends of launches. A thread of the executor serves
// resizable launches, and sleeps when there are none.
//
// One mutex guards the policy, its view and the profiles. Under it, the device is called only for
// resizes. A client's own mutex guards its lanes, as other sessions' threads resize their workers.
// Order of locks: the executor's, then a client's, then that of its streams.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/blocking_watch.h"
#include "daemon/engine/form_launcher.h"
#include "daemon/engine/lane_steering.h"
#include "daemon/engine/launch_batch.h"
#include "daemon/engine/partitions.h"
#include "daemon/engine/profiled_launches.h"
#include "daemon/engine/stream_table.h"
#include "daemon/engine/time_slot.h"
#include "daemon/engine/trace.h"
#include "scheduler/policies.h"

namespace slate::daemon {

struct ClientSpec {
  std::uint64_t session = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::string program;
  double weight = 1;
  double user_weight = 1;
  int priority = 0;
  /// The longest time that its work may keep other users' launches waiting; 0: no bound.
  std::chrono::milliseconds most_blocking{0};
  /// Called when a launch that could be called back has ended, and its stream may go on
  /// (LogicalStream::active_lanes). Thread: the executor's, or the completer's. May be empty.
  std::function<void()> lane_ended = {};
  /// Asked on the session's thread while a launch waits: true when its client has gone. Must be
  /// cheap. May be empty.
  std::function<bool()> lost_client = {};
};

/// For `slatectl status`.
struct ClientStatus {
  double weight = 1;
  int priority = 0;
  std::string kernel;  // kernel of the newest launch; empty: nothing runs
  scheduler::Form form = scheduler::Form::kNative;
  std::uint32_t sms = 0;          // SMs that it may use
  std::uint64_t blocks = 0;       // blocks of the newest launch
  std::uint64_t blocks_done = 0;  // blocks seen done; 0 for forms that do not show it
  bool waits = false;
};

/// Makes the policy once the machine is known.
using PolicyMaker = std::function<std::unique_ptr<scheduler::Policy>(
    const scheduler::Machine& machine, scheduler::ProfileTable& profiles)>;
/// Requires: `name` is one of scheduler::policy_names().
PolicyMaker policy_maker(const std::string& name, const scheduler::Settings& settings);

class Executor {
 public:
  class Client;
  /// The most profile rows that one session makes, and that there are in memory (more than on
  /// disk). A user makes at most as many as are left for others.
  static constexpr std::size_t kMostRowsOfSession = 2048, kMostRows = 40'000;
  /// The idle time after which the policy does not see a session, until its next launch.
  static constexpr std::chrono::milliseconds kAsleepAfter{1000};

  /// All outlive it.
  Executor(device::Device& device, FormService& forms, Completer& completer, Trace& trace,
           const PolicyMaker& policy, const scheduler::Settings& settings);
  /// Requires: no client is left.
  ~Executor();

  /// Requires: the session's `streams` and `group` outlive remove().
  std::shared_ptr<Client> add(ClientSpec spec, StreamTable& streams, Completer::Group& group);
  /// The session is about to end: its waiting launches are dropped, and its resizable launches are
  /// called back. From the return on no workers are added to its launches. Any thread.
  void abandon(Client& client);
  /// Ends launches that were called back for good. Requires: abandon() was called, and nothing of
  /// the session runs.
  void drop_lanes(Client& client);
  /// No partitions are made from now on. Requires: no client is left.
  void stop_preparing() { partitions_.stop(); }
  /// Requires: none of the client's work is unfinished.
  void remove(const std::shared_ptr<Client>& client);

  // Session thread.
  /// Launches `kernel` when the policy starts it. `spec` is the launch as the program asked for it.
  /// kUnavailable after abandon(), kInvalidConfiguration beyond the device's limits.
  Result<void> launch(Client& client, FunctionRecord& kernel, const device::LaunchSpec& spec,
                      LogicalStream& stream);
  /// Has the ends of launches watched, as StreamWatches::watch_all() says. Batches that are timed
  /// are always closed, so that their time has no pause of the program's in it. To be called for
  /// all before the thread sleeps.
  void flush(Client& client, StreamWatches::Watched which = StreamWatches::Watched::kAll);

  // Any thread.
  /// Until end_rest() was called as often, launches that can be called back stay off the device.
  /// For calls that would wait for them and hold up everybody (Device::StallHooks). Requires: the
  /// thread holds no client's mutex.
  void begin_rest();
  void end_rest();
  /// Another engine uses the device, too. From the first call on, this one keeps to its share of
  /// the time. `page`: null where it is known; `engine`: this one's serial number.
  void share_time(std::unique_ptr<TimePage> page, std::uint64_t engine);
  /// Calls `submit`, which puts work on `client`'s `stream` that takes SMs but is no launch: fills,
  /// and copies within the device. If another session's workers have all SMs, they rest from the
  /// end of the stream's earlier work until this work is done. They rest at most half of the time;
  /// the call waits for that, at most 10 ms. Session thread.
  Result<void> let_through(Client& client, device::Stream stream,
                           const std::function<Result<void>()>& submit);
  /// Sets a session's weight and priority; false if there is no such session.
  bool set(std::uint64_t session, double weight, int priority);
  std::optional<ClientStatus> status(std::uint64_t session) const;
  /// Whether there is one session.
  bool is_alone() const;
  /// What each session has on the device, and what it waits for.
  std::vector<SessionUse> uses() const;
  /// Null where no kernel is to have forms.
  FormMaker* form_maker() const { return forms_.maker(); }
  /// The policy's name never changes.
  std::string_view policy_name() const SLATE_NO_THREAD_SAFETY_ANALYSIS { return policy_->name(); }
  std::string arrangement() const;  // how the sessions share the device, in words
  const scheduler::Machine& machine() const { return partitions_.machine(); }
  /// Calls `use` with the profiles, under the mutex. `use` should copy and return.
  void with_profiles(const std::function<void(scheduler::ProfileTable&)>& use);

 private:
  /// What a session had been granted when another was told to wait for it.
  struct Earlier {
    std::shared_ptr<Client> client;
    std::uint64_t start = 0;  // number of the newest start
  };
  /// What the policy decided of a launch, and what was known of the launch then.
  struct Grant {
    scheduler::Start start;
    std::uint64_t number = 0;  // number among all clients' starts
    std::uint64_t serial = 0;  // serial among the client's unended starts
    scheduler::KernelId kernel = 0;
    double expected_ms = 0;      // expected time in the chosen form
    double alone_ms = 0;         // time alone, in the best form
    bool is_long = false;        // a long launch, or one that was never measured
    bool measured = false;       // whether its time is known at all
    bool known = false;          // whether its time is known well
    bool settled = false;        // whether its time is known well and nothing is tried
    bool by_itself = false;      // whether there was no other client
    std::uint32_t timed_of = 1;  // one of this many batches is timed
    bool repeats = false;        // whether launches like it need no decision for a while
    std::uint64_t changes = 0;
    // Blocks of the grid that it is for: all, except for slices.
    std::uint64_t first = 0, count = 0;
    double part = 1;        // part of the grid
    double filled = 1;      // part of the device that its blocks take at once
    bool profiled = false;  // whether to run natively and be counted, if possible
    /// Sessions whose work the launch waits for on the device.
    std::vector<Earlier> others;
  };

  Client* find(std::uint64_t session) const SLATE_REQUIRES(mutex_);
  void swap_places(std::size_t one, std::size_t other) SLATE_REQUIRES(mutex_);
  void wake(const Client& client) SLATE_REQUIRES(mutex_);
  void put_to_sleep(scheduler::Time now) SLATE_REQUIRES(mutex_);
  ProfileRecord& add_profile(Client& client, FunctionRecord& kernel,
                             const device::LaunchSpec& spec);
  double expected_ms(scheduler::KernelId kernel, scheduler::Form form, double part) const
      SLATE_REQUIRES(mutex_);
  bool worth_profiling(const scheduler::WaitingLaunch& launch, const scheduler::Start& start) const
      SLATE_REQUIRES(mutex_);
  void decide(scheduler::Time now) SLATE_REQUIRES(mutex_);
  bool waits_for_engines(scheduler::Time now) SLATE_REQUIRES(mutex_);
  void look_at_time(scheduler::Time now) SLATE_REQUIRES(mutex_);
  void grant(scheduler::Start start, scheduler::Time now) SLATE_REQUIRES(mutex_);
  void show_start(Client& client, Grant& grant, std::uint64_t blocks, scheduler::Time now)
      SLATE_REQUIRES(mutex_);
  void count_repeats(Client& client) SLATE_REQUIRES(mutex_);
  std::vector<Earlier> others_to_wait_for(Client& client) SLATE_REQUIRES(mutex_);
  void resize(const scheduler::Resize& change, scheduler::Time now) SLATE_REQUIRES(mutex_);
  std::optional<Grant> wait_for_grant(Client& client, const FunctionRecord& function,
                                      const LaunchShape& shape, scheduler::KernelId kernel,
                                      std::uint64_t started, bool stream_is_free);

  // executor_time.cc
  scheduler::EngineLoad load(scheduler::Time now) const SLATE_REQUIRES(mutex_);
  void hold(scheduler::Time now) SLATE_REQUIRES(mutex_);
  void release(scheduler::Time now) SLATE_REQUIRES(mutex_);

  // executor_uses.cc
  SessionUse use_of(const Client& client) const SLATE_REQUIRES(mutex_);
  bool is_waited_for(const Earlier& other) const SLATE_REQUIRES(mutex_);

  // executor_launch.cc, session thread.
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
  static bool join_batch(LogicalStream& stream, const Grant& grant);
  void never_begun(Client& client, const Grant& grant, const Result<void>& why);
  void show_lane(Client& client, const Grant& grant);
  Result<injector::Form> carry_out(Client& client, FunctionRecord& kernel,
                                   const device::LaunchSpec& spec, LogicalStream& stream,
                                   Grant grant, const LaunchShape& shape);
  Result<injector::Form> launch_profiled(const Client& client, FunctionRecord& kernel,
                                         const device::LaunchSpec& spec, LogicalStream& stream,
                                         const Grant& grant);
  bool is_filled_by_others(const Client& client) const SLATE_REQUIRES(mutex_);
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
  void take_lanes_off() SLATE_REQUIRES(mutex_);
  void put_lanes_back() SLATE_REQUIRES(mutex_);
  Result<void> watch_lane(Client& client, device::Stream stream,
                          std::shared_ptr<LaunchBatch> batch);
  Result<void> watch_launched(Client& client, const ActiveLane& lane,
                              const LaneSteering::Launched& launched);
  void look_after(const std::shared_ptr<Client>& client);
  Result<void> tend(Client& client, ActiveLane& lane, const LaneSteering::State& state);

  device::Device& device_;
  FormService& forms_;
  Completer& completer_;
  Trace& trace_;
  Partitions partitions_;
  ProfiledLaunches profiled_;
  scheduler::ProfileTable profiles_ SLATE_GUARDED_BY(mutex_);
  std::unique_ptr<scheduler::Policy> policy_ SLATE_PT_GUARDED_BY(mutex_);
  const scheduler::Settings settings_;

  mutable Mutex mutex_;
  // Rows of profiles, by user.
  std::map<std::uint32_t, std::size_t> rows_made_ SLATE_GUARDED_BY(mutex_);
  // The policy sees the first `awake_` sessions. The others have had nothing for long.
  std::vector<scheduler::SessionView> views_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Client>> clients_ SLATE_GUARDED_BY(mutex_);  // in the same order
  std::size_t awake_ SLATE_GUARDED_BY(mutex_) = 0;
  scheduler::Time next_sleep_ SLATE_GUARDED_BY(mutex_){};  // earliest time of put_to_sleep()
  scheduler::Decisions decisions_ SLATE_GUARDED_BY(mutex_);
  scheduler::Time again_ SLATE_GUARDED_BY(mutex_) = scheduler::kNever;
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint64_t> next_launch_{1};
  std::uint64_t starts_ SLATE_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> changes_{1};  // number of changes of the sessions; under the mutex
  CondVar tick_;
  // Null while no other engine uses the device.
  std::unique_ptr<TimeSlot> time_ SLATE_GUARDED_BY(mutex_) SLATE_PT_GUARDED_BY(mutex_);
  // Time until which the thread sleeps; the earliest there is while it is awake.
  scheduler::Time sleeps_until_ SLATE_GUARDED_BY(mutex_) = scheduler::Time::min();

  std::atomic<bool> lanes_active_{false};
  std::atomic<std::uint32_t> lanes_{0};  // lanes of all clients
  std::atomic<std::int64_t> let_through_from_ns_{0};
  LaneSteering steering_;
  std::thread thread_;  // last, as it uses all of the above
};

}  // namespace slate::daemon
