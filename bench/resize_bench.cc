// How long it takes to take SMs from a running kernel and to give them back: from the call that
// writes the table until a kernel with a block for each SM that was taken, half of the device as a
// partition of its own or the whole device, has had all its blocks there at once; and until the
// workers that are added afterwards are there, as seen by reading the workers' own counts. Blocks
// of the running kernel take --block-us.
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

#include "bench/require.h"
#include "daemon/dispatch/form_module.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "injector/ptx/module.h"

namespace slate::bench {
namespace {

using Clock = std::chrono::steady_clock;

// busy: blocks that take so long. gather: blocks that wait until `all` have come, also those of
// earlier launches. After a second a block gives up, which the word behind the count tells.
constexpr std::string_view kPtx = R"(
.version 7.8
.target sm_70
.address_size 64

.visible .entry busy(.param .u64 nanoseconds)
{
  .reg .pred %p;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [nanoseconds];
  mov.u64 %d2, %globaltimer;
again:
  mov.u64 %d3, %globaltimer;
  sub.u64 %d4, %d3, %d2;
  setp.lt.u64 %p, %d4, %d1;
  @%p bra again;
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
        nanoseconds_(static_cast<std::uint64_t>(block_us * 1000)),
        owned_(require(device::open_device(description), "device")),
        device_(*owned_) {
    const auto parsed = require(ptx::parse(std::string(kPtx)), "parse");
    module_ =
        require(daemon::load_forms(device_, *parsed,
                                   [this](std::string_view ptx) {
                                     return device_.load_module(device::ImageKind::kPtx,
                                                                std::as_bytes(std::span(ptx)));
                                   }),
                "load");
    gather_ = require(device_.find_function(module_.module, "gather"), "gather");
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
  }

  void run(std::ofstream& json) {
    std::vector<double> give, grow, preempt;
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
      require(queue_->supplement(~0u, sides_[static_cast<std::size_t>(round) % sides_.size()]),
              "supplement");
      while (present() < room_ * memory_->sm_count()) {
      }
      grow.push_back(microseconds_since(begun));
      if (round % 32 == 31) restart();  // the supplements' streams are taken otherwise
    }
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
    report("grow to all", grow, json);
    report("preempt and run a kernel of one wave", preempt, json);
  }

 private:
  daemon::WorkerTable table(std::uint32_t first, std::uint32_t end) const {
    daemon::WorkerTable result(memory_->sm_count(), 0);
    std::fill(result.begin() + first, result.begin() + end, injector::kMostWorkers);
    return result;
  }

  void start() {
    queue_ = std::make_unique<daemon::WorkerQueue>(device_, *memory_);
    daemon::FormLaunch launch;
    launch.spec.function = worker_;
    launch.spec.grid = {1u << 30};
    launch.spec.block = {kThreads};
    launch.spec.parameters = std::as_bytes(std::span(&nanoseconds_, 1));
    launch.parameter_offset =
        require(device_.function_info(worker_), "info").parameters.back().offset;
    launch.workers_per_sm = room_ =
        require(device_.max_blocks_per_sm(worker_, kThreads, 0), "occupancy");
    launch.task_sizes = daemon::TaskSizes{.size = 1, .quarter_blocks = 0, .single_blocks = 0};
    const daemon::WorkerTable all = table(0, memory_->sm_count());
    require(queue_->launch(launch, stream_, &all), "launch");
    while (present() < room_ * memory_->sm_count()) {
    }
  }
  void stop() {
    require(queue_->resize(table(0, 0), control_), "resize");
    while (present() != 0) {
    }
    finish(stream_);
    for (const device::Stream side : sides_) finish(side);
    queue_.reset();
  }
  void restart() {
    stop();
    start();
  }

  /// Workers on the device, by the control block.
  std::uint32_t present() {
    const std::uint64_t bytes = words_.size() * 4;
    require(device_.copy_to_host(words_.data(), bytes,
                                 queue_->control().base + injector::ControlBlock::kSmOffset, bytes,
                                 {.width = bytes, .height = 1}, control_),
            "copy");
    finish(control_);
    std::uint32_t sum = 0;
    for (const std::uint32_t word : words_) sum += word & 0xffff;
    return sum;
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
    require(device_.copy_to_host(counts.data(), sizeof(counts), gathered_.base, sizeof(counts),
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
                           {"block_us", static_cast<double>(nanoseconds_) / 1000},
                           {"rounds", rounds_},
                           {"median_us", median},
                           {"p99_us", p99},
                           {"most_us", times.back()}}
                .dump()
         << "\n";
  }

  static constexpr std::uint32_t kThreads = 256;
  const int rounds_;
  const std::uint64_t nanoseconds_;
  const std::unique_ptr<device::Device> owned_;
  device::Device& device_;
  daemon::FormModule module_;
  device::Function gather_{}, worker_{};
  device::AddressRange gathered_{};    // how many blocks of gather have come, and given up
  std::uint32_t gathered_blocks_ = 0;  // have been launched
  std::unique_ptr<daemon::ControlMemory> memory_;
  std::unique_ptr<daemon::WorkerQueue> queue_;
  device::Stream stream_{}, control_{}, urgent_{}, given_{};
  daemon::WorkerTable kept_;  // of the SMs that are not given
  std::array<device::Stream, 33> sides_{};
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
  app.add_option("--block-us", block_us, "time of one block")->capture_default_str();
  app.add_option("--rounds", rounds, "of each measurement")->capture_default_str();
  app.add_option("--json", json_path, "file for the rows");
  CLI11_PARSE(app, argc, argv);
  std::ofstream json;
  if (!json_path.empty()) json.open(json_path, std::ios::app);
  slate::bench::Bench(device, block_us, rounds).run(json);
}
