#include "device/sim/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace slate::sim {
namespace {

// Warp instructions of one block's turn: long enough that the lock costs nothing, short enough
// (well under a millisecond) that copies, cancellation and other blocks need not wait.
constexpr std::uint32_t kBudget = 4096;

device::Dim3 block_index(const device::Dim3& grid, std::uint64_t linear) {
  return {static_cast<std::uint32_t>(linear % grid.x),
          static_cast<std::uint32_t>(linear / grid.x % grid.y),
          static_cast<std::uint32_t>(linear / grid.x / grid.y)};
}

std::size_t below(std::mt19937_64& generator, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator);
}

}  // namespace

struct Gpu::Resident {
  std::shared_ptr<KernelRun> run;  // before block, which refers to it
  device::Dim3 index;
  Sm* sm;
  std::optional<Block> block;  // made by the worker at its first turn
};

struct Gpu::Sm {
  std::uint32_t id = 0;
  Worker* worker = nullptr;
  std::uint32_t warps = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_bytes = 0;
  std::vector<std::unique_ptr<Resident>> resident;
  std::size_t cursor = 0;  // whose turn is next

  bool fits(const KernelRun& run) const { return room(run) > 0; }
  /// Blocks of it that would fit beside what is there.
  std::uint32_t room(const KernelRun& run) const {
    const BlockCost& cost = run.cost;
    const auto left = [](std::uint32_t most, std::uint32_t used, std::uint32_t each) {
      return used >= most ? 0 : (most - used) / std::max(each, 1u);
    };
    const auto blocks = static_cast<std::uint32_t>(resident.size());
    return std::min(
        {left(kBlocksPerSm, blocks, 1), left(kWarpsPerSm, warps, cost.warps),
         left(kRegistersPerSm, registers, cost.registers),
         cost.shared_bytes == 0 ? ~0u : left(kSharedPerSm, shared_bytes, cost.shared_bytes),
         left(cost.occupancy, run.resident_on_[id], 1)});
  }
};

struct Gpu::Worker {
  std::vector<Sm*> sms;
  std::size_t cursor = 0;
  Schedule schedule;  // used without the lock, by this worker only
  bool idle = false;
  CondVar wake;
  std::thread thread;
};

Gpu::Gpu(const Settings& settings) : settings_(settings), placement_(settings.seed.value_or(0)) {
  const std::uint32_t threads = host_threads(settings);
  for (std::uint32_t i = 0; i < threads; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->schedule.random = settings.seed.has_value();
    worker->schedule.generator.seed(~settings.seed.value_or(0));
    worker->schedule.quantum = settings.quantum;
    workers_.push_back(std::move(worker));
  }
  for (std::uint32_t id = 0; id < settings.sms; ++id) {
    auto sm = std::make_unique<Sm>();
    sm->id = id;
    sm->worker = workers_[id % threads].get();
    sm->worker->sms.push_back(sm.get());
    sms_.push_back(std::move(sm));
  }
  for (auto& worker : workers_) worker->thread = std::thread(&Gpu::work, this, std::ref(*worker));
}

Gpu::~Gpu() {
  {
    Lock lock(mutex_);
    SLATE_CHECK(unfinished_ == 0);
    stopping_ = true;
    for (auto& worker : workers_) wake(*worker);
  }
  for (auto& worker : workers_) worker->thread.join();
  SLATE_CHECK(waiting_.empty() && jobs_.empty());
  for (auto& sm : sms_) SLATE_CHECK(sm->resident.empty() && sm->warps == 0 && sm->registers == 0);
}

void Gpu::start(std::shared_ptr<KernelRun> run) {
  SLATE_CHECK(run->cost.occupancy > 0 && run->sms.any());
  Lock lock(mutex_);
  SLATE_CHECK(!run->started_);
  run->started_ = true;
  run->total_ = run->launch.grid.count();
  run->resident_on_.assign(sms_.size(), 0);
  ++unfinished_;
  const auto later = [](int priority, const auto& other) { return priority < other->priority; };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), run->priority, later),
                  std::move(run));
  dispatch();
}

void Gpu::cancel(KernelRun& run) {
  Lock lock(mutex_);
  if (!run.started_ || run.over_ || run.outcome_.cancelled) return;
  run.outcome_.cancelled = true;
  std::shared_ptr<KernelRun> keep;
  for (const auto& each : waiting_) {
    if (each.get() == &run) keep = each;
  }
  stop(run);
  // With no block out, nobody else will notice. The end is reported from a worker, without locks.
  if (run.resident_ == 0) {
    SLATE_CHECK(keep != nullptr);
    post_locked([this, keep] {
      Lock relock(mutex_);
      finish_if_over(*keep, relock);
    });
  }
  dispatch();
}

std::uint64_t Gpu::count_sms(const SmSet& sms) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(sms_, [&sms](const auto& sm) { return sms[sm->id]; }));
}

void Gpu::post(std::function<void()> job) {
  Lock lock(mutex_);
  post_locked(std::move(job));
}

void Gpu::post_locked(std::function<void()> job) {
  ++unfinished_;
  jobs_.push_back(std::move(job));
  for (auto& worker : workers_) {
    if (worker->idle) return wake(*worker);
  }
}

void Gpu::wake(Worker& worker) {
  if (!std::exchange(worker.idle, false)) return;
  worker.wake.notify_one();
}

void Gpu::work(Worker& worker) {
  Lock lock(mutex_);
  while (true) {
    // A job and a block in turn: neither may starve the other.
    const bool had_job = !jobs_.empty();
    if (had_job) run_job(lock);
    Resident* resident = worker.schedule.random ? random_resident(worker) : next_resident(worker);
    if (resident != nullptr) {
      step(worker, *resident, lock);
    } else if (!had_job) {
      if (stopping_) return;
      worker.idle = true;
      worker.wake.wait(lock, [&worker] { return !worker.idle; });
    }
  }
}

void Gpu::run_job(Lock& lock) {
  std::function<void()> job = std::move(jobs_.front());
  jobs_.pop_front();
  --unfinished_;
  lock.unlock();
  job();
  job = nullptr;
  lock.lock();
}

Gpu::Resident* Gpu::next_resident(Worker& worker) {
  for (std::size_t i = 0; i < worker.sms.size(); ++i) {
    Sm& sm = *worker.sms[worker.cursor++ % worker.sms.size()];
    if (!sm.resident.empty()) return sm.resident[sm.cursor++ % sm.resident.size()].get();
  }
  return nullptr;
}

Gpu::Resident* Gpu::random_resident(Worker& worker) {
  std::vector<Sm*> busy;
  for (Sm* sm : worker.sms) {
    if (!sm->resident.empty()) busy.push_back(sm);
  }
  if (busy.empty()) return nullptr;
  std::mt19937_64& generator = worker.schedule.generator;
  const Sm& sm = *busy[below(generator, busy.size())];
  return sm.resident[below(generator, sm.resident.size())].get();
}

void Gpu::step(Worker& worker, Resident& resident, Lock& lock) {
  KernelRun& run = *resident.run;
  if (!run.launch.cancelled.load(std::memory_order_relaxed)) {
    lock.unlock();
    Result<Block::State> state = run_block(worker.schedule, resident);
    lock.lock();
    if (state && *state == Block::State::kRunnable) {
      check_time(run);
      return;
    }
    if (!state && !run.outcome_.fault && !run.outcome_.cancelled) {
      run.outcome_.fault = std::move(state.error());
      stop(run);
    }
  }
  retire(resident, lock);
}

Result<Block::State> Gpu::run_block(Schedule& schedule, Resident& resident) {
  const KernelLaunch& launch = resident.run->launch;
  try {
    if (!resident.block) resident.block.emplace(launch, resident.index, resident.sm->id);
    const std::uint32_t budget =
        schedule.random ? 1 + static_cast<std::uint32_t>(below(schedule.generator, kBudget))
                        : kBudget;
    const Block::State state = resident.block->run(schedule, budget);
    if (state == Block::State::kFaulted) return std::unexpected(resident.block->fault());
    return state;
  } catch (const std::bad_alloc&) {
    resident.block.reset();  // the words below need memory, too
  }
  return fail(ErrorCode::kLaunchFailed,
              fmt::format("kernel {}: the host has no memory for its registers and stacks",
                          launch.program->info().name));
}

void Gpu::check_time(KernelRun& run) {
  if (settings_.max_kernel_seconds <= 0 || run.outcome_.fault || run.outcome_.cancelled) return;
  const double seconds = static_cast<double>(now_ns() - run.started_ns_) * 1e-9;
  if (seconds <= settings_.max_kernel_seconds) return;
  run.outcome_.fault =
      Error{ErrorCode::kLaunchTimeout,
            fmt::format("kernel {} has run for {:.1f} s; max_kernel_seconds is {}",
                        run.launch.program->info().name, seconds, settings_.max_kernel_seconds)};
  stop(run);
}

void Gpu::stop(KernelRun& run) {
  run.launch.cancelled.store(true, std::memory_order_relaxed);
  run.next_ = run.total_;
  std::erase_if(waiting_, [&run](const auto& each) { return each.get() == &run; });
}

void Gpu::retire(Resident& resident, Lock& lock) {
  Sm& sm = *resident.sm;
  const auto found =
      std::find_if(sm.resident.begin(), sm.resident.end(),
                   [&resident](const auto& each) { return each.get() == &resident; });
  std::unique_ptr<Resident> mine = std::move(*found);
  sm.resident.erase(found);
  const std::shared_ptr<KernelRun> run = mine->run;
  sm.warps -= run->cost.warps;
  sm.registers -= run->cost.registers;
  sm.shared_bytes -= run->cost.shared_bytes;
  --run->resident_on_[sm.id];
  if (mine->block) {
    run->outcome_.statistics.thread_instructions += mine->block->thread_instructions();
  }
  dispatch();
  // Freeing the block takes a while. It counts as resident until then: done() must find it gone.
  lock.unlock();
  mine.reset();
  lock.lock();
  --run->resident_;
  finish_if_over(*run, lock);
}

void Gpu::finish_if_over(KernelRun& run, Lock& lock) {
  if (run.over_ || run.next_ < run.total_ || run.resident_ > 0) return;
  run.over_ = true;
  LaunchStatistics& statistics = run.outcome_.statistics;
  statistics.function = run.launch.program->info().name;
  statistics.blocks = run.total_;
  statistics.nanoseconds = static_cast<std::uint64_t>(now_ns() - run.started_ns_);
  --unfinished_;
  lock.unlock();
  const bool well = !run.outcome_.fault && !run.outcome_.cancelled;
  if (well && settings_.observer) settings_.observer(statistics);
  std::exchange(run.done, nullptr)(run.outcome_);
  lock.lock();
}

void Gpu::dispatch() {
  SmSet taken;  // by launches before the present one, whose blocks are not all out
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const std::shared_ptr<KernelRun> run = *each;
    const bool waits = run->cooperative && run->next_ == 0 && !fits_at_once(*run, taken);
    while (!waits && run->next_ < run->total_) {
      Sm* sm = choose_sm(*run, taken);
      if (sm == nullptr) break;
      place(run, *sm);
    }
    if (run->next_ == run->total_) {
      each = waiting_.erase(each);
    } else {
      taken |= run->sms;
      if (taken.all()) return;
      ++each;
    }
  }
}

bool Gpu::fits_at_once(const KernelRun& run, const SmSet& taken) const {
  const SmSet free = run.sms & ~taken;
  std::uint64_t room = 0;
  for (const auto& sm : sms_) {
    if (free[sm->id]) room += sm->room(run);
  }
  return room >= run.total_;
}

Gpu::Sm* Gpu::choose_sm(const KernelRun& run, const SmSet& taken) {
  const SmSet free = run.sms & ~taken;
  Sm* best = nullptr;
  std::size_t candidates = 0;
  for (auto& sm : sms_) {
    if (!free[sm->id] || !sm->fits(run)) continue;
    ++candidates;
    if (settings_.seed) {
      if (below(placement_, candidates) == 0) best = sm.get();
    } else if (best == nullptr || sm->warps < best->warps) {
      best = sm.get();
    }
  }
  return best;
}

void Gpu::place(const std::shared_ptr<KernelRun>& run, Sm& sm) {
  if (run->next_ == 0) run->started_ns_ = now_ns();
  auto resident = std::make_unique<Resident>();
  resident->run = run;
  resident->index = block_index(run->launch.grid, run->next_++);
  resident->sm = &sm;
  sm.resident.push_back(std::move(resident));
  sm.warps += run->cost.warps;
  sm.registers += run->cost.registers;
  sm.shared_bytes += run->cost.shared_bytes;
  ++run->resident_on_[sm.id];
  ++run->resident_;
  wake(*sm.worker);
}

}  // namespace slate::sim
