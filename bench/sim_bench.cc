// How fast the simulated device executes: millions of thread instructions a second ("M
// thread-instr/s") of fma_loop (convergent arithmetic), vector_add (streaming memory),
// matrix_multiply (shared memory and barriers) and collatz (integers, divergent loops), through the
// whole Device interface. The argument is the number of host threads.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bench/sim_bench_kernels.h"
#include "device/sim/sim_device.h"

namespace slate::bench {
namespace {

using device::Dim3;

constexpr std::uint64_t kArenaBytes = 64ull << 20;

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "sim_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// One device with the kernels loaded and an arena mapped.
class Bench {
 public:
  explicit Bench(std::uint32_t threads) {
    sim::Settings settings;
    settings.memory = 256ull << 20;
    settings.threads = threads;
    settings.observer = [this](const sim::LaunchStatistics& statistics) {
      std::lock_guard lock(mutex_);
      thread_instructions_ += statistics.thread_instructions;
    };
    device_ = must(sim::SimDevice::make(settings));
    const std::span<const char> text(kSimBenchPtx, sizeof kSimBenchPtx - 1);
    module_ = must(device_->load_module(device::ImageKind::kPtx, std::as_bytes(text)));
    arena_ = {must(device_->reserve(kArenaBytes)), kArenaBytes};
    must(device_->map(arena_));
    stream_ = must(device_->create_stream(0));
    event_ = must(device_->create_event(false));
  }

  device::Address at(std::uint64_t offset) const { return arena_.base + offset; }

  template <typename... Args>
  void launch(const std::string& name, Dim3 grid, Dim3 block, Args... args) {
    std::vector<std::byte> packed;
    const auto append = [&packed](const auto& value) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      packed.insert(packed.end(), bytes.begin(), bytes.end());
    };
    (append(args), ...);
    const device::Function function = must(device_->find_function(module_, name));
    must(device_->launch({function, grid, block, 0, packed, arena_, {}}, stream_));
    must(device_->record(event_, stream_));
    while (!must(device_->query(event_))) {
      device_->wait_for_progress(std::chrono::milliseconds(100));
    }
  }

  void report(benchmark::State& state) {
    std::lock_guard lock(mutex_);
    state.counters["M thread-instr/s"] = benchmark::Counter(
        static_cast<double>(thread_instructions_) * 1e-6, benchmark::Counter::kIsRate);
  }

 private:
  std::mutex mutex_;
  std::uint64_t thread_instructions_ = 0;
  device::Module module_{};
  device::AddressRange arena_;
  device::Stream stream_{};
  device::Event event_{};
  std::unique_ptr<sim::SimDevice> device_;  // last: it calls the observer
};

void fma_loop(benchmark::State& state) {
  Bench bench(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    bench.launch("fma_loop", {64, 1, 1}, {256, 1, 1}, bench.at(0), std::int32_t{256});
  }
  bench.report(state);
}

void vector_add(benchmark::State& state) {
  constexpr std::int32_t kCount = 1 << 20;
  Bench bench(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    bench.launch("vector_add", {256, 1, 1}, {256, 1, 1}, bench.at(0), bench.at(4 * kCount),
                 bench.at(8 * kCount), kCount);
  }
  bench.report(state);
}

void matrix_multiply(benchmark::State& state) {
  constexpr std::int32_t kSide = 128;
  constexpr std::uint64_t kBytes = 4 * kSide * kSide;
  Bench bench(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    bench.launch("matrix_multiply", {kSide / 16, kSide / 16, 1}, {16, 16, 1}, bench.at(0),
                 bench.at(kBytes), bench.at(2 * kBytes), kSide);
  }
  bench.report(state);
}

void collatz(benchmark::State& state) {
  Bench bench(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    bench.launch("collatz", {64, 1, 1}, {256, 1, 1}, bench.at(0), std::uint32_t{400});
  }
  bench.report(state);
}

// Small blocks by the thousand: what dispatching a block costs.
void tiny_blocks(benchmark::State& state) {
  Bench bench(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    bench.launch("collatz", {20'000, 1, 1}, {32, 1, 1}, bench.at(0), std::uint32_t{0});
  }
  bench.report(state);
  state.counters["blocks/s"] =
      benchmark::Counter(20'000, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(fma_loop)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(vector_add)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(matrix_multiply)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(collatz)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(tiny_blocks)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace slate::bench

BENCHMARK_MAIN();
