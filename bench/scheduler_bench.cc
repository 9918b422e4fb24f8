// What one decision costs, per policy, with 1 to 64 sessions that keep launches queued: decide()
// and finished() on a stand-in for the executor, in the steady state. Counts allocations there,
// too: there should be none. Single thread, no GPU.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <new>
#include <string>

#include "scheduler/policies.h"

namespace {

std::uint64_t allocations = 0;  // of this one thread

using namespace slate::scheduler;

constexpr double kKernelMs = 0.2;

/// Sessions with launches in flight; each step ends the oldest launch and decides until nothing
/// more is started.
class Executor {
 public:
  Executor(std::string_view policy, std::size_t sessions)
      : policy_(make_policy(policy, {}, machine_, profiles_).value()) {
    for (std::size_t i = 0; i < sessions; ++i) {
      KernelKey key;
      key.name = "kernel";
      key.code = i % 7;
      const KernelId kernel = profiles_.find_or_add(key);
      for (int k = 0; k < 8; ++k) profiles_.kernel(kernel).alone[0].add(kKernelMs);
      SessionView& view = views_.emplace_back();
      view.id = 10 + i;
      view.waiting = WaitingLaunch{
          .kernel = kernel, .blocks = 4096, .wave = 1056, .worker_legal = false, .since = {}};
    }
    queue_.resize(1 << 16);
    decisions_.start.reserve(64);
    decisions_.resize.reserve(64);
  }

  void step() {
    now_ += std::chrono::microseconds(200);
    if (tail_ != head_) finish(queue_[tail_++ % queue_.size()]);
    decide();
  }

  std::uint64_t decisions() const { return count_; }

 private:
  struct Flight {
    std::size_t session = 0;
    Start start;
  };

  void finish(const Flight& flight) {
    SessionView& view = views_[flight.session];
    --view.running.launches;
    view.running.expected -= Milliseconds(kKernelMs);
    policy_->finished({.session = view.id,
                       .kernel = view.waiting->kernel,
                       .form = flight.start.form,
                       .placement = flight.start.placement,
                       .tag = flight.start.tag,
                       .launches = 1,
                       .blocks = 4096,
                       .device_time = Milliseconds(kKernelMs),
                       .started = now_ - std::chrono::microseconds(200),
                       .ended = now_});
  }

  void decide() {
    do {
      decisions_.clear();
      policy_->decide({.now = now_, .machine = machine_, .sessions = views_}, decisions_);
      ++count_;
      for (const Start& start : decisions_.start) {
        const std::size_t i = start.session - 10;
        RunningWork& running = views_[i].running;
        ++running.launches;
        running.expected += Milliseconds(kKernelMs);
        running.kernel = views_[i].waiting->kernel;
        running.placement = start.placement;
        running.tag = start.tag;
        running.started = now_;
        queue_[head_++ % queue_.size()] = {i, start};
      }
      // fifo starts whatever waits: one round is what there is.
    } while (!decisions_.start.empty() && policy_->name() != "fifo");
  }

  Machine machine_{.sm_count = 132, .units = 17, .sms_per_unit = 8};
  ProfileTable profiles_;
  std::unique_ptr<Policy> policy_;
  std::vector<SessionView> views_;
  std::vector<Flight> queue_;
  std::size_t head_ = 0, tail_ = 0;
  Decisions decisions_;
  Time now_ = Time{} + std::chrono::hours(1);
  std::uint64_t count_ = 0;
};

void run(benchmark::State& state, std::string_view policy) {
  Executor executor(policy, static_cast<std::size_t>(state.range(0)));
  for (int i = 0; i < 20'000; ++i) executor.step();  // past measuring and searching
  const std::uint64_t decisions = executor.decisions(), before = allocations;
  for (auto _ : state) executor.step();
  const auto made = static_cast<double>(executor.decisions() - decisions);
  state.counters["per_decision"] =
      benchmark::Counter(made, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["allocations"] = static_cast<double>(allocations - before) / made;
}

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

int main(int argc, char** argv) {
  for (const std::string_view name : policy_names()) {
    benchmark::RegisterBenchmark(std::string(name).c_str(),
                                 [name](benchmark::State& state) { run(state, name); })
        ->Arg(1)
        ->Arg(2)
        ->Arg(8)
        ->Arg(64);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
