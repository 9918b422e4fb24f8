#include "device/sim/streams.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace slate::sim {

struct Streams::Queue {
  int priority = 0;
  device::Partition partition{};
  SmSet sms;
  std::deque<Operation> operations;
  bool busy = false;  // the operation before the front runs on the Gpu
  std::shared_ptr<KernelRun> running;
  std::optional<Error> fault;
  bool destroyed = false;
};

namespace {

Error cancelled_error() {
  return {ErrorCode::kLaunchFailed, "cancelled before it finished"};
}

Result<void> run(const Streams::Job& job) {
  try {
    return job();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kLaunchFailed, "sim: the host has no memory for a copy");
  }
}

}  // namespace

Streams::Streams(const Settings& settings)
    : fault_ends_all_(settings.fault_ends_all), gpu_(settings) {}

Streams::~Streams() {
  MutexLock lock(mutex_);
  const std::set<std::shared_ptr<Queue>> queues = queues_;
  for (const auto& queue : queues) cancel_locked(queue);
  became_idle_.wait(lock, [this]() SLATE_REQUIRES(mutex_) {
    return std::none_of(queues_.begin(), queues_.end(),
                        [](const auto& each) { return each->busy; });
  });
  for (const auto& queue : queues_) SLATE_CHECK(queue->operations.empty());
}

Result<std::shared_ptr<Streams::Queue>> Streams::find(device::Stream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such stream");
  return found->second;
}

Result<Streams::Event*> Streams::find(device::Event event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such event");
  return &found->second;
}

device::Stream Streams::create_stream(int priority, device::Partition partition, const SmSet& sms) {
  auto queue = std::make_shared<Queue>();
  queue->priority = priority;
  queue->partition = partition;
  queue->sms = sms;
  MutexLock lock(mutex_);
  const device::Stream stream{next_handle_++};
  queues_.insert(queue);
  streams_.emplace(stream, std::move(queue));
  return stream;
}

void Streams::destroy_stream(device::Stream stream) {
  MutexLock lock(mutex_);
  auto queue = find(stream);
  if (!queue) return;
  (*queue)->destroyed = true;
  streams_.erase(stream);
  advance(*queue);
}

bool Streams::uses(device::Partition partition) {
  MutexLock lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [partition](const auto& each) { return each.second->partition == partition; });
}

Result<void> Streams::cancel(device::Stream stream) {
  MutexLock lock(mutex_);
  auto queue = find(stream);
  if (!queue) return std::unexpected(std::move(queue.error()));
  cancel_locked(*queue);
  return {};
}

void Streams::cancel_locked(const std::shared_ptr<Queue>& queue) {
  Queues ready{queue};
  for (Operation& operation : std::exchange(queue->operations, {})) {
    if (auto* record = std::get_if<RecordMark>(&operation)) {
      reach(*record->mark, queue->fault ? queue->fault : cancelled_error(), ready);
    }
  }
  if (queue->running) gpu_.cancel(*queue->running);
  for (auto& each : ready) advance(std::move(each));
}

device::Event Streams::create_event(bool timing) {
  MutexLock lock(mutex_);
  const device::Event event{next_handle_++};
  events_.emplace(event, Event{timing, nullptr});
  return event;
}

void Streams::destroy_event(device::Event event) {
  MutexLock lock(mutex_);
  events_.erase(event);
}

Result<void> Streams::push(device::Stream stream, Operation operation) {
  auto queue = find(stream);
  if (!queue) return std::unexpected(std::move(queue.error()));
  (*queue)->operations.push_back(std::move(operation));
  advance(std::move(*queue));
  return {};
}

Result<void> Streams::record(device::Event event, device::Stream stream) {
  MutexLock lock(mutex_);
  auto found = find(event);
  if (!found) return std::unexpected(std::move(found.error()));
  auto mark = std::make_shared<Mark>();
  Result<void> pushed = push(stream, RecordMark{mark});
  if (pushed) (*found)->last = std::move(mark);
  return pushed;
}

Result<void> Streams::wait(device::Stream stream, device::Event event) {
  MutexLock lock(mutex_);
  auto found = find(event);
  if (!found) return std::unexpected(std::move(found.error()));
  auto queue = find(stream);
  if (!queue) return std::unexpected(std::move(queue.error()));
  // An event that was never recorded holds nobody up, as in CUDA.
  if ((*found)->last == nullptr) return {};
  return push(stream, WaitMark{(*found)->last});
}

Result<bool> Streams::query(device::Event event) {
  MutexLock lock(mutex_);
  auto found = find(event);
  if (!found) return std::unexpected(std::move(found.error()));
  const auto& mark = (*found)->last;
  if (mark == nullptr) return true;
  if (mark->error) return std::unexpected(*mark->error);
  return mark->reached;
}

Result<float> Streams::elapsed_ms(device::Event start, device::Event stop) {
  MutexLock lock(mutex_);
  std::int64_t reached[2];
  const device::Event both[2] = {start, stop};
  for (int i = 0; i < 2; ++i) {
    auto found = find(both[i]);
    if (!found) return std::unexpected(std::move(found.error()));
    const Event& event = **found;
    if (!event.timing || event.last == nullptr) {
      return fail(ErrorCode::kInvalidHandle, "elapsed_ms: an event without a time");
    }
    if (event.last->error) return std::unexpected(*event.last->error);
    if (!event.last->reached) {
      return fail(ErrorCode::kInvalidValue, "elapsed_ms: an event that is not reached yet");
    }
    reached[i] = event.last->reached_ns;
  }
  return static_cast<float>(static_cast<double>(reached[1] - reached[0]) * 1e-6);
}

void Streams::wait_for_progress(std::chrono::microseconds timeout) {
  MutexLock lock(mutex_);
  const std::uint64_t seen = progress_seen_;
  progress_changed_.wait_for(lock, timeout,
                             [this, seen]() SLATE_REQUIRES(mutex_) { return progress_ != seen; });
  progress_seen_ = progress_;
}

Result<void> Streams::launch(device::Stream stream, std::shared_ptr<KernelRun> run) {
  MutexLock lock(mutex_);
  if (run->cooperative) {
    const auto queue = find(stream);
    if (!queue) return std::unexpected(queue.error());
    const std::uint64_t room = run->cost.occupancy * gpu_.count_sms((*queue)->sms);
    if (run->launch.grid.count() > room) {
      return fail(ErrorCode::kCooperativeTooLarge,
                  "sim: a cooperative grid of " + std::to_string(run->launch.grid.count()) +
                      " blocks, of which " + std::to_string(room) + " fit at once");
    }
  }
  return push(stream, std::move(run));
}

Result<void> Streams::enqueue(device::Stream stream, Job job) {
  MutexLock lock(mutex_);
  return push(stream, std::move(job));
}

void Streams::advance(std::shared_ptr<Queue> first) {
  Queues ready{std::move(first)};
  while (!ready.empty()) {
    const std::shared_ptr<Queue> queue = std::move(ready.back());
    ready.pop_back();
    while (!queue->busy && !queue->operations.empty() && run_front(queue, ready)) {
    }
    if (queue->destroyed && !queue->busy && queue->operations.empty()) queues_.erase(queue);
  }
}

// False if the front has to wait. Queues that may go on now are added to `ready`.
bool Streams::run_front(const std::shared_ptr<Queue>& queue, Queues& ready) {
  if (!queue->fault && must_wait(queue)) return false;
  Operation operation = std::move(queue->operations.front());
  queue->operations.pop_front();
  if (auto* record = std::get_if<RecordMark>(&operation)) {
    reach(*record->mark, queue->fault, ready);
  } else if (!queue->fault) {
    if (auto* run = std::get_if<std::shared_ptr<KernelRun>>(&operation)) {
      start_kernel(queue, std::move(*run));
    } else if (auto* job = std::get_if<Job>(&operation)) {
      start_job(queue, std::move(*job));
    }
  }
  return true;
}

// True if the front of the queue is a wait that is not over; it will be looked at again when it
// may be.
bool Streams::must_wait(const std::shared_ptr<Queue>& queue) {
  Operation& front = queue->operations.front();
  if (auto* wait = std::get_if<WaitMark>(&front)) {
    if (wait->mark->reached) return false;
    if (!std::exchange(wait->registered, true)) wait->mark->waiters.push_back(queue);
    return true;
  }
  return false;
}

void Streams::reach(Mark& mark, std::optional<Error> error, Queues& ready) {
  mark.reached = true;
  mark.reached_ns = now_ns();
  mark.error = std::move(error);
  for (auto& waiter : std::exchange(mark.waiters, {})) ready.push_back(std::move(waiter));
  ++progress_;
  progress_changed_.notify_all();
}

void Streams::start_kernel(const std::shared_ptr<Queue>& queue, std::shared_ptr<KernelRun> run) {
  queue->busy = true;
  queue->running = run;
  run->priority = queue->priority;
  run->sms = queue->sms;
  run->done = [this, queue](const KernelOutcome& outcome) { finished(queue, outcome.fault); };
  gpu_.start(std::move(run));
}

void Streams::start_job(const std::shared_ptr<Queue>& queue, Job job) {
  queue->busy = true;
  gpu_.post([this, queue, job = std::move(job)] {
    Result<void> done = run(job);
    finished(queue, done ? std::nullopt : std::optional(std::move(done.error())));
  });
}

/// What runs stops where it is.
void Streams::lose_all(const Error& fault) {
  lost_.store(true);
  for (const auto& other : queues_) {
    if (!other->fault) other->fault = fault;
    if (other->running) gpu_.cancel(*other->running);
  }
}

void Streams::finished(const std::shared_ptr<Queue>& queue, std::optional<Error> fault) {
  MutexLock lock(mutex_);
  queue->busy = false;
  queue->running = nullptr;
  if (fault && fault_ends_all_) lose_all(*fault);
  if (fault) queue->fault = std::move(fault);
  advance(queue);
  if (!queue->busy) became_idle_.notify_all();
}

}  // namespace slate::sim
