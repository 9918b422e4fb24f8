// Decisions: sessions that come and go, what the policy is told, and what becomes of its answers.
// executor_launch.cc carries out, executor_lanes.cc has the resizable launches.
#include "daemon/engine/executor.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/log.h"
#include "base/spin.h"
#include "daemon/engine/executor_client.h"
#include "scheduler/forms.h"

namespace slate::daemon {
namespace {

using scheduler::Form;
using scheduler::SessionView;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSettledSamples = 16;  // of a kernel whose time is known well
// Every so many batches of settled kernels are timed. Beside others the policy goes by it.
constexpr std::uint32_t kTimedAlone = 16, kTimedBeside = 4;
constexpr std::chrono::milliseconds kAskForClient{100};

/// The administrator's choice in place of the policy's, if there is one.
std::optional<Form> forced(FormChoice choice, const LaunchShape& shape) {
  if (choice == FormChoice::kWorker) return shape.worker ? Form::kWorker : Form::kNative;
  if (choice == FormChoice::kSlice) return shape.slice ? Form::kSlice : Form::kNative;
  return std::nullopt;
}

}  // namespace

PolicyMaker policy_maker(const std::string& name, const scheduler::Settings& settings) {
  return [name, settings](const scheduler::Machine& machine, scheduler::ProfileTable& profiles) {
    auto policy = scheduler::make_policy(name, settings, machine, profiles);
    SLATE_CHECK(policy.has_value());
    return std::move(*policy);
  };
}

Executor::Executor(device::Device& device, FormService& forms, Completer& completer, Trace& trace,
                   const PolicyMaker& policy, const scheduler::Settings& settings)
    : device_(device),
      forms_(forms),
      completer_(completer),
      trace_(trace),
      partitions_(device, settings),
      profiled_(device, forms),
      policy_(policy(partitions_.machine(), profiles_)),
      settings_(settings),
      steering_(device, partitions_, trace),
      thread_([this] { run(); }) {
  trace_.policy_changed(policy_->name());
}

Executor::~Executor() {
  {
    const MutexLock lock(mutex_);
    SLATE_CHECK(clients_.empty());
    ending_ = true;
  }
  tick_.notify_all();
  thread_.join();
}

std::shared_ptr<Executor::Client> Executor::add(ClientSpec spec, StreamTable& streams,
                                                Completer::Group& group) {
  auto client = std::make_shared<Client>(std::move(spec), streams, group);
  trace_.session_begins(client->spec.session, trace_.name(client->spec.program), client->spec.pid);
  const MutexLock lock(mutex_);
  client->index = views_.size();
  SessionView view;
  view.id = client->spec.session;
  view.user = client->spec.uid;
  view.user_weight = client->spec.user_weight;
  view.weight = client->spec.weight;
  view.priority = client->spec.priority;
  view.idle_since = Clock::now();
  views_.push_back(view);
  clients_.push_back(client);
  wake(*client);
  return client;
}

void Executor::abandon(Client& client) {
  {
    const MutexLock lock(mutex_);
    // A thread that tends its lanes at this moment finishes first. So the end of its streams' work,
    // which the caller waits for next, is the end of that, too.
    const MutexLock lanes(client.mutex);
    client.abandoned.store(true);
    changes_.fetch_add(1);
    client.granted_or_abandoned.notify_all();
  }
  tick_.notify_one();
}

void Executor::drop_lanes(Client& client) {
  std::vector<std::shared_ptr<LaunchBatch>> batches;
  {
    const MutexLock lanes(client.mutex);
    client.gone = true;
    for (const ActiveLane& lane : client.lanes) batches.push_back(lane.batch);
  }
  for (const auto& batch : batches) {
    batch_ended(batch, fail(ErrorCode::kUnavailable, "the session has ended"));
  }
}

void Executor::remove(const std::shared_ptr<Client>& client) {
  const MutexLock lock(mutex_);
  changes_.fetch_add(1);
  views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(client->index));
  clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(client->index));
  if (client->index < awake_) --awake_;
  for (std::size_t i = client->index; i < clients_.size(); ++i) clients_[i]->index = i;
  // Sessions that waited for one another would keep each other's memory for ever.
  client->chained_to.clear();
  client->granted.reset();
  policy_->session_ended(client->spec.session);
  trace_.session_ends(client->spec.session);
  decide(Clock::now());
}

bool Executor::set(std::uint64_t session, double weight, int priority) {
  const MutexLock lock(mutex_);
  Client* const client = find(session);
  if (client == nullptr) return false;
  wake(*client);
  views_[client->index].weight = weight;
  views_[client->index].priority = priority;
  changes_.fetch_add(1);
  decide(Clock::now());
  return true;
}

std::optional<ClientStatus> Executor::status(std::uint64_t session) const {
  const MutexLock lock(mutex_);
  const Client* const client = find(session);
  if (client == nullptr) return std::nullopt;
  const SessionView& view = views_[client->index];
  ClientStatus status;
  status.weight = view.weight;
  status.priority = view.priority;
  status.waits = view.waiting.has_value();
  if (view.running.launches == 0) return status;
  if (client->kernel) status.kernel = *client->kernel;
  status.form = view.running.form;
  status.sms = machine().sms(view.running.placement);
  status.blocks = view.running.blocks;
  status.blocks_done = view.running.blocks_done;
  return status;
}

std::string Executor::arrangement() const {
  const MutexLock lock(mutex_);
  return policy_->arrangement_text(machine());
}

void Executor::with_profiles(const std::function<void(scheduler::ProfileTable&)>& use) {
  const MutexLock lock(mutex_);
  use(profiles_);
}

Executor::Client* Executor::find(std::uint64_t session) const {
  const auto found = std::ranges::find(views_, session, &SessionView::id);
  return found == views_.end() ? nullptr
                               : clients_[static_cast<std::size_t>(found - views_.begin())].get();
}

void Executor::swap_places(std::size_t one, std::size_t other) {
  std::swap(views_[one], views_[other]);
  std::swap(clients_[one], clients_[other]);
  clients_[one]->index = one;
  clients_[other]->index = other;
}

/// The policy sees the session from now on, among the others in the order of arrival.
void Executor::wake(const Client& client) {
  if (client.index < awake_) return;
  swap_places(client.index, awake_++);
  for (std::size_t i = client.index; i > 0 && views_[i - 1].id > views_[i].id; --i)
    swap_places(i - 1, i);
  changes_.fetch_add(1);
}

/// Takes sessions that have been idle for long out of the policy's sight, as each costs time at
/// every decision. Not those of a higher priority than another one: others have to leave room for
/// their next launch.
void Executor::put_to_sleep(scheduler::Time now) {
  next_sleep_ = now + kAsleepAfter / 4;
  const scheduler::Milliseconds longest =
      std::max({scheduler::Milliseconds(kAsleepAfter), settings_.linger, settings_.priority_hold});
  int least = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < awake_; ++i) least = std::min(least, views_[i].priority);
  for (std::size_t i = awake_; i-- > 0;) {
    const SessionView& view = views_[i];
    const bool idle =
        !view.waiting && view.running.launches == 0 && now - view.idle_since > longest;
    if (!idle || view.priority > least) continue;
    --awake_;
    for (std::size_t at = i; at < awake_; ++at) swap_places(at, at + 1);
    changes_.fetch_add(1);
  }
}

/// Adds the row at the kernel's first launch of that shape. Rows are for ever. A session, or user,
/// that makes up kernels and shapes without end has a limited number; beyond it, all share one.
ProfileRecord& Executor::add_profile(Client& client, FunctionRecord& kernel,
                                     const device::LaunchSpec& spec) {
  const std::uint32_t bucket = scheduler::grid_bucket(spec.grid.count());
  constexpr std::size_t kMostShapes = 256;
  if (kernel.profiles.size() == kMostShapes) kernel.profiles.clear();
  const scheduler::KernelKey key{.code = kernel.code,
                                 .name = *kernel.name,
                                 .block = {spec.block.x, spec.block.y, spec.block.z},
                                 .grid_bucket = bucket};
  const MutexLock lock(mutex_);
  auto id = profiles_.find(key);
  if (!id) {
    std::size_t& made = rows_made_[client.spec.uid];
    const bool full = client.rows >= kMostRowsOfSession || profiles_.size() + made >= kMostRows;
    id = profiles_.find_or_add(full ? scheduler::KernelKey{.name = "(others)"} : key);
    if (!full) {
      ++client.rows;
      ++made;
      profiles_.kernel(*id).owner = client.spec.uid;
    }
  }
  profiles_.kernel(*id).blocks = spec.grid.count();
  return kernel.profiles.emplace_back(ProfileRecord{spec.block, bucket, *id});
}

double Executor::expected_ms(scheduler::KernelId kernel, Form form, double part) const {
  const scheduler::KernelProfile& profile = profiles_.kernel(kernel);
  const auto& as_form = profile.alone[static_cast<std::size_t>(form)];
  if (as_form.known()) return as_form.ms * part;
  return scheduler::expected_time(profiles_, kernel, part, settings_).count();
}

/// Asks the policy, and does what can be done at once, until nothing more is started.
void Executor::decide(scheduler::Time now) {
  if (time_ != nullptr && waits_for_engines(now)) return;
  if (awake_ > 1 && now >= next_sleep_) put_to_sleep(now);
  do {
    decisions_.clear();
    const auto sessions = std::span<const SessionView>(views_).first(awake_);
    policy_->decide({.now = now, .machine = machine(), .sessions = sessions}, decisions_);
    if (!decisions_.reason.empty()) trace_.decided(decisions_.reason, decisions_.score, now);
    for (const scheduler::Resize& change : decisions_.resize) resize(change, now);
    for (const scheduler::Start& start : decisions_.start) grant(start, now);
    // A session that is alone has one launch waiting at a time, which was this one.
  } while (!decisions_.start.empty() && awake_ > 1);
  const bool earlier = decisions_.again < again_;
  again_ = decisions_.again;
  if (earlier) tick_.notify_one();
}

/// Whether the launch should be counted. It runs natively then, whatever was decided. For one
/// launch that does no harm, unless it is a long one that cannot be stopped.
bool Executor::worth_profiling(const scheduler::WaitingLaunch& launch,
                               const scheduler::Start& start) const {
  if (forms_.choice() != FormChoice::kAuto || launch.blocks_started != 0) return false;
  if (start.placement.blocks_per_sm != 0) return false;
  if (!profiled_.wants(launch.kernel, profiles_.kernel(launch.kernel))) return false;
  return start.form == Form::kNative ||
         expected_ms(launch.kernel, Form::kNative, 1) <= settings_.native_try.count();
}

void Executor::grant(scheduler::Start start, scheduler::Time now) {
  Client* const client = find(start.session);
  if (client == nullptr || !views_[client->index].waiting) return;
  SessionView& view = views_[client->index];
  const scheduler::WaitingLaunch& waiting = *view.waiting;
  start.form = waiting.only.value_or(start.form);
  const scheduler::TimeEstimate& known = profiles_.kernel(waiting.kernel).best_alone();
  const double part = scheduler::part_of(waiting, start);
  const double expected = expected_ms(waiting.kernel, start.form, part);
  const std::uint64_t left = waiting.blocks - waiting.blocks_started;
  const bool in_slices = start.form == Form::kSlice && start.slice_blocks != 0;
  const bool lone = awake_ == 1 || (start.alone && start.repeats);
  const bool well_known = known.samples >= kSettledSamples;
  client->last_start = client->last_came = ++starts_;
  client->granted = Grant{.start = start,
                          .number = client->last_start,
                          .kernel = waiting.kernel,
                          .expected_ms = expected,
                          .alone_ms = known.known() ? known.ms * part : expected,
                          .is_long = expected >= settings_.long_kernel.count() || !known.known(),
                          .measured = known.known(),
                          .known = well_known,
                          .settled = (lone || start.sampled) && well_known && !start.tried,
                          .by_itself = awake_ == 1,
                          .timed_of = lone ? kTimedAlone : kTimedBeside,
                          .repeats = (lone || start.repeats) && well_known,
                          .changes = changes_.load(),
                          .first = waiting.blocks_started,
                          .count = in_slices ? std::min(start.slice_blocks, left) : left,
                          .part = part,
                          .filled = scheduler::filled_by(waiting),
                          .profiled = worth_profiling(waiting, start),
                          .others = {}};
  if (start.alone) client->granted->others = others_to_wait_for(*client);
  if (!client->granted->others.empty()) {
    client->chained = client->last_start;
    client->chained_at = now;
    client->chained_to = client->granted->others;
  }
  show_start(*client, *client->granted, waiting.blocks, now);
  view.waiting.reset();
  client->granted_or_abandoned.notify_all();
}

/// In the policy's view: one more launch, of a grid of `blocks`.
void Executor::show_start(Client& client, Grant& grant, std::uint64_t blocks, scheduler::Time now) {
  scheduler::RunningWork& running = views_[client.index].running;
  grant.serial = client.unended.add(grant.number, grant.measured, grant.filled, now);
  client.unended.show(running);
  ++running.launches;
  running.expected += scheduler::Milliseconds(grant.expected_ms);
  running.filled += grant.filled;
  running.kernel = grant.kernel;
  running.form = grant.start.form;
  running.placement = grant.start.placement;
  running.tag = grant.start.tag;
  running.blocks = blocks;
  running.blocks_done = grant.first;
  running.started = now;
}

/// The sessions with work on the device that was started, or put back, since this client last
/// waited for them; within a turn there are none.
std::vector<Executor::Earlier> Executor::others_to_wait_for(Client& client) {
  std::vector<Earlier> others;
  for (const auto& other : std::span(clients_).first(awake_)) {
    if (other.get() != &client && other->last_came > client.waited_for &&
        views_[other->index].running.launches > 0) {
      others.push_back({other, other->last_start});
    }
  }
  client.waited_for = starts_;
  return others;
}

/// Adds launches without a decision to the policy's view. Requires: the mutex is held, on the
/// session's thread.
void Executor::count_repeats(Client& client) {
  scheduler::RunningWork& running = views_[client.index].running;
  for (const auto& batch : client.repeated) {
    if (batch->ended.load()) continue;  // and leaves the view without them
    running.launches += batch->completion.launches - batch->counted;
    running.expected += scheduler::Milliseconds(batch->expected_ms - batch->counted_ms);
    batch->counted = batch->completion.launches;
    batch->counted_ms = batch->expected_ms;
  }
  client.repeated.clear();
}

std::optional<Executor::Grant> Executor::wait_for_grant(
    Client& client, const FunctionRecord& function, const LaunchShape& shape,
    scheduler::KernelId kernel, std::uint64_t started, bool stream_is_free) {
  const auto now = Clock::now();
  MutexLock lock = lock_soon(mutex_);
  client.waiting = {.session = client.spec.session,
                    .launch = next_launch_.fetch_add(1),
                    .kernel = *function.trace_name,
                    .form = Form::kNative,
                    .placement = {},
                    .blocks = shape.blocks};
  client.kernel = function.name;
  if (client.abandoned) return std::nullopt;
  count_repeats(client);
  wake(client);
  SessionView& view = views_[client.index];
  view.waiting = scheduler::WaitingLaunch{.kernel = kernel,
                                          .blocks = shape.blocks,
                                          .blocks_started = started,
                                          .wave = shape.wave,
                                          .worker_legal = shape.worker,
                                          .slice_legal = shape.slice,
                                          .stream_is_free = stream_is_free,
                                          .worker_likely = shape.worker_likely,
                                          .only = forced(forms_.choice(), shape),
                                          .since = now};
  decide(now);
  const bool waits = !client.granted && !client.abandoned;
  const auto is_lost = [&] { return client.spec.lost_client && client.spec.lost_client(); };
  if (waits) {
    trace_.launch_waits(client.waiting, now);
    // What is waited for may be the end of this session's own launches, which must be seen then.
    lock.unlock();
    flush(client);
    completer_.leave(client.group);
    // Grants may come so quickly that it is not asked below.
    const bool lost = is_lost();
    lock.lock();
    if (lost) client.abandoned.store(true);
  }
  const auto settled = [&] { return client.granted || client.abandoned; };
  while (!client.granted_or_abandoned.wait_for(lock, kAskForClient, settled)) {
    if (is_lost()) client.abandoned.store(true);
  }
  if (!client.granted) {
    views_[client.index].waiting.reset();
    if (waits) trace_.launch_ends(client.waiting, 0);
  }
  return std::exchange(client.granted, std::nullopt);
}

}  // namespace slate::daemon
