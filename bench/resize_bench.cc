// How long it takes to take SMs from a running kernel and to give them back: from the call that
// writes the table until a kernel with a block for each SM that was taken, half of the device as a
// partition of its own or the whole device, has had all its blocks there at once; and until workers
// are on all SMs again, and all of them there, as seen by reading the workers' own counts. The
// running kernel does arithmetic; natively, on a full device, its blocks take --block-us. Its tasks
// are as the scheduler would have them.
//
//   resize_bench --device cuda:0 --rounds 300 --json FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/form_module.h"
#include "bench/known_kernel.h"
#include "bench/require.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "injector/ptx/module.h"

namespace slate::bench {
namespace {

using Clock = std::chrono::steady_clock;

// busy: so many rounds of arithmetic. gather: blocks that wait until `all` have come, also those of
// earlier launches. After a second a block gives up, which the word behind the count tells.
constexpr std::string_view kPtx = R"(
.version 7.8
.target sm_70
.address_size 64

.visible .entry busy(.param .u64 result, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %d<2>;
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, %f1;
  mov.f32 %f3, %f1;
again:
  fma.rn.f32 %f1, %f1, 0f3F7FBE77, 0f3A83126F;
  fma.rn.f32 %f2, %f2, 0f3F7FBE77, 0f3B03126F;
  fma.rn.f32 %f3, %f3, 0f3F7FBE77, 0f3B449BA6;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra again;
  add.f32 %f1, %f1, %f2;
  add.f32 %f1, %f1, %f3;
  setp.neu.f32 %p, %f1, 0fC2F6E979;
  @%p bra done;
  ld.param.u64 %d1, [result];
  cvta.to.global.u64 %d1, %d1;
  st.global.f32 [%d1], %f1;
done:
  ret;
}

.visible .entry gather(.param .u64 count, .param .u32 all)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %d<6>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p, %r1, 0;
  @%p bra done;
  ld.param.u64 %d1, [count];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u32 %r2, [all];
  atom.global.add.u32 %r3, [%d1], 1;
  mov.u64 %d2, %globaltimer;
again:
  ld.volatile.global.u32 %r4, [%d1];
  setp.ge.u32 %p, %r4, %r2;
  @%p bra done;
  mov.u64 %d3, %globaltimer;
  sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p, %d4, 1000000000;
  @%p bra again;
  atom.global.add.u32 %r5, [%d1 + 4], 1;
done:
  ret;
}
)";

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

class Bench {
 public:
  Bench(const std::string& description, double block_us, int rounds)
      : rounds_(rounds),
        owned_(require(device::open_device(description), "device")),
        device_(*owned_) {
    module_ = require(bench::load_with_forms(device_, kPtx), "load");
    gather_ = require(device_.find_function(module_.module, "gather"), "gather");
    native_ = require(device_.find_function(module_.module, "busy"), "busy");
    worker_ =
        require(device_.find_function(module_.module, module_.find("busy")->worker), "worker");
    constexpr std::size_t kMostSharedOfBlock = 97;  // CU_DEVICE_ATTRIBUTE_..._PER_BLOCK_OPTIN
    shared_ = static_cast<std::uint32_t>(device_.info().attributes[kMostSharedOfBlock]);
    require(device_.set_max_dynamic_shared(gather_, shared_), "shared memory");
    gathered_ = {.base = require(device_.reserve(device_.granularity()), "reserve"),
                 .bytes = device_.granularity()};
    require(device_.map(gathered_), "map");
    memory_ = require(daemon::ControlMemory::create(device_), "control memory");
    const auto [least, greatest] = device_.stream_priorities();
    stream_ = require(device_.create_stream(least), "stream");
    control_ = require(device_.create_stream(greatest), "stream");
    urgent_ = require(device_.create_stream(greatest + 1), "stream");
    const auto units = require(device_.partition_units(), "units");
    const auto kept = static_cast<std::uint32_t>(units.size() / 2);
    const auto given = static_cast<std::uint32_t>(units.size()) - kept;
    given_ = require(device_.create_stream(
                         greatest, require(device_.create_partition(kept, given), "partition")),
                     "stream");
    kept_ = table(0, 0);
    for (std::uint32_t unit = 0; unit < kept; ++unit) {
      for (const std::uint32_t sm : units[unit]) kept_[sm] = injector::kMostWorkers;
    }
    for (auto& side : sides_) side = require(device_.create_stream(least), "stream");
    event_ = require(device_.create_event(false), "event");
    words_.resize(memory_->sm_count());
    require(device_.register_host(words_.data(), words_.size() * 4), "register");
    room_ = require(device_.max_blocks_per_sm(worker_, kThreads, 0), "occupancy");
    busy_.result = gathered_.base + 8;
    make_blocks_take(block_us);
    choose_tasks();
  }

  void run(std::ofstream& json) {
    std::vector<double> give, grow, fill, preempt;
    start();
    const daemon::WorkerTable all = table(0, memory_->sm_count());
    const auto sms_given = static_cast<std::uint32_t>(std::count(kept_.begin(), kept_.end(), 0U));
    for (int round = 0; round < rounds_; ++round) {
      auto begun = Clock::now();
      require(queue_->resize(kept_, control_), "resize");
      launch_on_whole_sms(given_, sms_given);
      give.push_back(microseconds_since(begun));
      begun = Clock::now();
      require(queue_->resize(all, control_), "resize");
      require(queue_->supplement(queue_->room_gained(),
                                 sides_[static_cast<std::size_t>(round) % sides_.size()]),
              "supplement");
      wait_until([this] { return present().sms == memory_->sm_count(); });
      grow.push_back(microseconds_since(begun));
      wait_until([this] { return present().workers == room_ * memory_->sm_count(); });
      fill.push_back(microseconds_since(begun));
    }
    restart();
    for (int round = 0; round < rounds_; ++round) {
      const auto begun = Clock::now();
      require(queue_->resize(table(0, 0), control_), "resize");
      launch_on_whole_sms(urgent_, memory_->sm_count());
      preempt.push_back(microseconds_since(begun));
      restart();
    }
    stop();
    check_gatherings();
    report("give half to another kernel", give, json);
    report("grow, workers on all SMs", grow, json);
    report("grow, all workers", fill, json);
    report("preempt and run a kernel of one wave", preempt, json);
  }

 private:
  daemon::WorkerTable table(std::uint32_t first, std::uint32_t end) const {
    daemon::WorkerTable result(memory_->sm_count(), 0);
    std::fill(result.begin() + first, result.begin() + end, injector::kMostWorkers);
    return result;
  }

  std::span<const std::byte> busy_parameters() const {
    return std::as_bytes(std::span(&busy_, 1)).first(sizeof(busy_.result) + sizeof(busy_.rounds));
  }

  /// Milliseconds that a launch takes natively, with so many waves of blocks.
  double time_natively(std::uint32_t waves) {
    const auto begin = require(device_.create_event(true), "event");
    const auto end = require(device_.create_event(true), "event");
    require(device_.record(begin, stream_), "record");
    require(device_.launch({.function = native_,
                            .grid = {waves * native_wave()},
                            .block = {kThreads},
                            .parameters = busy_parameters(),
                            .arena = gathered_},
                           stream_),
            "launch");
    require(device_.record(end, stream_), "record");
    finish(stream_);
    const double elapsed = require(device_.elapsed_ms(begin, end), "elapsed");
    device_.destroy_event(begin);
    device_.destroy_event(end);
    return elapsed;
  }
  std::uint32_t native_wave() {
    return require(device_.max_blocks_per_sm(native_, kThreads, 0), "occupancy") *
           memory_->sm_count();
  }

  void make_blocks_take(double block_us) {
    constexpr std::uint32_t kWaves = 20;
    busy_.rounds = 1000;
    for (int step = 0; step < 4; ++step) {  // from a guess on a cold device
      const double took_us = time_natively(kWaves) * 1000 / kWaves;
      busy_.rounds = std::max(1u, static_cast<std::uint32_t>(busy_.rounds * block_us / took_us));
    }
    block_us_ = time_natively(kWaves) * 1000 / kWaves;
  }

  void choose_tasks() {
    const KnownKernel known(block_us_ / 1000 * kBlocks / native_wave(), kBlocks, native_wave(),
                            room_ * memory_->sm_count());
    task_size_ = known.usual_size();
    prefetch_ = known.prefetches(task_size_);
    fmt::print("blocks of {:.1f} us, {} a task, the next one fetched {}\n", block_us_, task_size_,
               prefetch_ ? "ahead" : "after it");
  }

  void start() {
    queue_ = std::make_unique<daemon::WorkerQueue>(device_, *memory_);
    daemon::FormLaunch launch;
    launch.spec.function = worker_;
    launch.spec.grid = {kBlocks};
    launch.spec.block = {kThreads};
    launch.spec.parameters = busy_parameters();
    launch.parameter_offset =
        require(device_.function_info(worker_), "info").parameters.back().offset;
    launch.workers_per_sm = room_;
    launch.task_sizes = daemon::task_sizes(task_size_);
    launch.prefetch = prefetch_;
    const daemon::WorkerTable all = table(0, memory_->sm_count());
    require(queue_->launch(launch, stream_, &all), "launch");
    wait_until([this] { return present().workers == room_ * memory_->sm_count(); });
  }
  void stop() {
    require(queue_->resize(table(0, 0), control_), "resize");
    wait_until([this] { return present().workers == 0; });
    finish(stream_);
    for (const device::Stream side : sides_) finish(side);
    queue_.reset();
  }
  void restart() {
    stop();
    start();
  }

  struct Present {
    std::uint32_t workers = 0, sms = 0;  // SMs with workers
  };
  /// By the control block.
  Present present() {
    const std::uint64_t bytes = words_.size() * 4;
    require(device_.copy(
                Place::on_host(words_.data(), bytes),
                Place::on_device(queue_->control().base + injector::ControlBlock::kSmOffset, bytes),
                {.width = bytes, .height = 1}, control_),
            "copy");
    finish(control_);
    Present sum;
    for (const std::uint32_t word : words_) {
      sum.workers += injector::workers_present(word);
      if (injector::workers_present(word) > 0) ++sum.sms;
    }
    return sum;
  }
  template <typename Condition>
  static void wait_until(Condition condition) {
    const auto begun = Clock::now();
    while (!condition()) {
      if (Clock::now() - begun < std::chrono::seconds(5)) continue;
      fmt::print(stderr, "workers are missing, or do not leave\n");
      std::exit(1);
    }
  }
  void finish(device::Stream stream) {
    require(device_.record(event_, stream), "record");
    while (!require(device_.query(event_), "query")) {
    }
  }
  /// One block of the most threads on each of the stream's SMs, all of them at once: none has
  /// shared memory for a second one, and they wait for each other, lest an early SM runs several.
  void launch_on_whole_sms(device::Stream stream, std::uint32_t sms) {
    gathered_blocks_ += sms;
    const struct {
      std::uint64_t count;
      std::uint32_t all;
    } parameters{gathered_.base, gathered_blocks_};
    require(device_.launch({.function = gather_,
                            .grid = {sms},
                            .block = {1024},
                            .dynamic_shared_bytes = shared_,
                            .parameters = std::as_bytes(std::span(&parameters, 1)).first(12),
                            .arena = gathered_},
                           stream),
            "launch");
    finish(stream);
  }
  void check_gatherings() {
    std::array<std::uint32_t, 2> counts{};
    require(device_.copy(Place::on_host(counts.data(), sizeof(counts)),
                         Place::on_device(gathered_.base, sizeof(counts)),
                         {.width = sizeof(counts), .height = 1}, control_),
            "copy");
    finish(control_);
    if (counts == std::array{gathered_blocks_, 0u}) return;
    fmt::print(stderr, "{} of {} blocks were not all there at once\n", counts[1], gathered_blocks_);
    std::exit(1);
  }

  void report(const char* what, std::vector<double> times, std::ofstream& json) const {
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    const double p99 = times[(times.size() * 99) / 100];
    fmt::print("{:38} median {:7.1f} us  p99 {:7.1f} us  most {:7.1f} us\n", what, median, p99,
               times.back());
    if (!json.is_open()) return;
    json << nlohmann::json{{"what", what},
                           {"block_us", block_us_},
                           {"task_blocks", task_size_},
                           {"prefetch", prefetch_},
                           {"rounds", rounds_},
                           {"median_us", median},
                           {"p99_us", p99},
                           {"most_us", times.back()}}
                .dump()
         << "\n";
  }

  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kBlocks = 1u << 30;
  const int rounds_;
  const std::unique_ptr<device::Device> owned_;
  device::Device& device_;
  bench::FormModule module_;
  device::Function gather_{}, worker_{}, native_{};
  struct {
    std::uint64_t result;
    std::uint32_t rounds;
  } busy_{};  // parameters
  double block_us_ = 0;
  std::uint32_t task_size_ = 1;
  bool prefetch_ = false;
  device::AddressRange gathered_{};    // how many blocks of gather have come, and given up
  std::uint32_t gathered_blocks_ = 0;  // have been launched
  std::unique_ptr<daemon::ControlMemory> memory_;
  std::unique_ptr<daemon::WorkerQueue> queue_;
  device::Stream stream_{}, control_{}, urgent_{}, given_{};
  daemon::WorkerTable kept_;  // of the SMs that are not given
  std::array<device::Stream, 4> sides_{};
  device::Event event_{};
  std::vector<std::uint32_t> words_;
  std::uint32_t room_ = 1, shared_ = 0;
};

}  // namespace
}  // namespace slate::bench

int main(int argc, char** argv) {
  std::string device = "cuda:0", json_path;
  double block_us = 20;
  int rounds = 300;
  CLI::App app("Latency of resizing and preempting a running kernel", "resize_bench");
  app.add_option("--device", device, "as slated's")->capture_default_str();
  app.add_option("--block-us", block_us, "time of a block, natively")->capture_default_str();
  app.add_option("--rounds", rounds, "of each measurement")->capture_default_str();
  app.add_option("--json", json_path, "file for the rows");
  CLI11_PARSE(app, argc, argv);
  std::ofstream json;
  if (!json_path.empty()) json.open(json_path, std::ios::app);
  slate::bench::Bench(device, block_us, rounds).run(json);
}
