// dispatch_bench: the worker form driven by the host and by the dispatch kernel on the device
// (daemon/dispatch/dispatch.cu), beside the native kernel: time of a launch, time of an epoch
// (workers that start and leave at once), and whether the results are equal byte for byte, also
// when workers are called back and resized while they run. One process, medians over rounds. Needs
// a GPU; with
// --link-only it links every kernel and ends.
//
//   dispatch_bench [--device cuda:0] [--programs FOLDER] [--json FILE] [NAME...]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/dispatch_subject.h"
#include "bench/median.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"

namespace {

using namespace slate;
using namespace slate::bench;
using daemon::DispatchProgress;

constexpr std::uint32_t kEpochs = 200;  // of a measurement

enum Way { kNative, kHost, kDevice, kWays };
constexpr const char* kWayNames[kWays] = {"native", "host", "device"};

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        owned_(require(device::open_device(settings.device), settings.device)),
        device_(*owned_) {
    stream_ = require(device_.create_stream(0), "stream");
    control_ = require(device_.create_stream(0), "stream");
    start_ = require(device_.create_event(true), "event");
    stop_ = require(device_.create_event(true), "event");
    memory_ = require(daemon::ControlMemory::create(device_, true), "control memory");
    arena_.bytes = 6ull << 30;
    arena_.base = require(device_.reserve(arena_.bytes), "reserve");
    require(device_.map(arena_), "map");
    host_queue_ = std::make_unique<daemon::WorkerQueue>(device_, *memory_);
    queue_ = std::make_unique<daemon::WorkerQueue>(device_, *memory_);
  }

  void run(const Benchmark& benchmark, std::ofstream& json) {
    Subject subject(device_, stream_, arena_, settings_, benchmark);
    subject_ = &subject;
    name_ = benchmark.name;
    const std::vector<double> launches = time_ways();
    const std::string present =
        fmt::format("host {}, device {} of {}", workers_in(kHost, launches),
                    workers_in(kDevice, launches), subject.room * memory_->sm_count());
    std::vector<double> host_epochs, device_epochs;
    expected_ = result_of([&] { launch(kNative); });
    check("host", [&] { launch(kHost); });
    check("device", [&] { launch(kDevice); });
    std::uint32_t retreats = 0;
    for (int round = 0; round < settings_.rounds; ++round) {
      check("host epochs", [&] { host_epochs.push_back(host_epoch()); });
      check("device epochs", [&] { device_epochs.push_back(device_epoch()); });
      check("retreats", [&] { retreats += run_with_retreats(); });
    }
    report(launches, median(host_epochs), median(device_epochs), retreats, present, json);
  }

  bool all_equal() const { return all_equal_; }

 private:
  daemon::FormLaunch form(bool by_device = false) const {
    daemon::FormLaunch form;
    if (by_device) form.dispatch = subject_->dispatch;
    form.spec = subject_->spec;
    form.spec.function = subject_->worker;
    form.parameter_offset = subject_->info.parameters.back().offset;
    form.workers_per_sm = subject_->room;
    form.independent_blocks = subject_->independent;
    return form;
  }

  void launch(Way way) {
    if (way == kNative) {
      device::LaunchSpec spec = subject_->spec;
      spec.function = subject_->native;
      require(device_.launch(spec, stream_), "launch");
    } else {
      const auto& queue = way == kHost ? host_queue_ : queue_;
      require(queue->launch(form(way == kDevice), stream_), "launch");
    }
  }

  template <typename Work>
  std::vector<std::byte> result_of(Work work) {
    subject_->restore();
    work();
    std::vector<std::byte> result;
    subject_->download(result);
    wait(device_, stream_);
    return result;
  }

  template <typename Work>
  void check(const char* what, Work work) {
    if (result_of(work) == expected_) return;
    all_equal_ = false;
    fmt::print("{}: WRONG RESULT: {}\n", name_, what);
  }

  template <typename Work>
  double microseconds(Work work) {
    require(device_.record(start_, stream_), "record");
    work();
    require(device_.record(stop_, stream_), "record");
    wait(device_, stream_);
    return 1000.0 * double{require(device_.elapsed_ms(start_, stop_), "elapsed")};
  }

  /// Medians over rounds in which the ways take turns.
  std::vector<double> time_ways() {
    launch(kNative);
    const double once = microseconds([&] { launch(kNative); });
    const int repetitions = std::clamp(static_cast<int>(10'000 / once), 3, 200);
    std::vector<std::vector<double>> times(kWays);
    for (int round = 0; round < settings_.rounds; ++round) {
      for (int way = 0; way < kWays; ++way) {
        launch(Way(way));
        times[way].push_back(microseconds([&] {
                               for (int i = 0; i < repetitions; ++i) launch(Way(way));
                             }) /
                             repetitions);
      }
    }
    std::vector<double> medians;
    for (const auto& of_way : times) medians.push_back(median(of_way));
    return medians;
  }

  /// Workers present in the middle of a launch.
  std::uint64_t workers_in(Way way, const std::vector<double>& launches) {
    using std::chrono::steady_clock;
    wait(device_, stream_);
    launch(way);
    const std::chrono::duration<double, std::micro> half(launches[static_cast<std::size_t>(way)] /
                                                         2);
    for (const auto begin = steady_clock::now(); steady_clock::now() - begin < half;) {
    }
    const device::Address control = (way == kHost ? host_queue_ : queue_)->control().base;
    std::vector<std::uint32_t> words(memory_->sm_count());
    require(device_.copy(Place::on_host(words.data()),
                         Place::on_device(control + injector::ControlBlock::kSmOffset),
                         {4 * words.size(), 1}, control_),
            "copy");
    wait(device_, control_);
    wait(device_, stream_);
    std::uint64_t present = 0;
    for (const std::uint32_t word : words) present += injector::workers_present(word);
    return present;
  }

  daemon::WorkerTable everywhere(std::uint32_t allowed) const {
    return daemon::WorkerTable(memory_->sm_count(), allowed);
  }

  /// Workers launched by the host again and again that find no room, then the kernel itself.
  double host_epoch() {
    const daemon::WorkerTable nowhere = everywhere(0);
    daemon::WorkerQueue queue(device_, *memory_);
    require(queue.launch(form(), stream_, &nowhere), "launch");
    const double took = microseconds([&] {
      for (std::uint32_t i = 0; i < kEpochs; ++i) require(queue.resume(), "resume");
    });
    require(queue.resize(everywhere(subject_->room), stream_), "resize");
    require(queue.resume(), "resume");
    wait(device_, stream_);
    return took / kEpochs;
  }

  /// The same by the dispatch kernel; then the host takes the launch over.
  double device_epoch() {
    const daemon::WorkerTable nowhere = everywhere(0);
    daemon::WorkerQueue queue(device_, *memory_);
    queue.set_dispatch_options({.wait_for_room = false, .most_epochs = kEpochs});
    const double took =
        microseconds([&] { require(queue.launch(form(true), stream_, &nowhere), "launch"); });
    const DispatchProgress progress = look(queue);
    if (progress.outcome != daemon::kDispatchStopped || progress.epochs != kEpochs) {
      all_equal_ = false;
      fmt::print("{}: WRONG: outcome {} after {} epochs\n", name_,
                 static_cast<std::uint32_t>(progress.outcome), progress.epochs);
    }
    queue.take_over(progress);
    require(queue.resize(everywhere(subject_->room), stream_), "resize");
    require(queue.resume(), "resume");
    wait(device_, stream_);
    return took / kEpochs;
  }

  DispatchProgress look(const daemon::WorkerQueue& queue) {
    std::vector<std::uint32_t> words(queue.watched_bytes() / 4);
    require(device_.copy(Place::on_host(words.data(), 0), Place::on_device(queue.control().base, 0),
                         {queue.watched_bytes(), 1}, control_),
            "look");
    wait(device_, control_);
    const DispatchProgress progress = queue.dispatch_progress(words);
    if (progress.outcome == daemon::kDispatchFailed) {
      fmt::print(stderr, "{}: the device's runtime reports error {}\n", name_, progress.error);
      std::exit(1);
    }
    return progress;
  }

  /// Calls all workers back while they run, every other time with the dispatch kernel, lets some
  /// in, then more, until the kernel is done. Returns how often workers were launched anew.
  std::uint32_t run_with_retreats() {
    wait(device_, stream_);
    require(queue_->launch(form(true), stream_), "launch");
    DispatchProgress progress;
    for (std::uint32_t turn = 0;; ++turn) {
      const bool stops = turn % 2 == 1;
      require(queue_->resize(everywhere(0), control_), "resize");
      if (stops) require(queue_->stop(control_), "stop");
      do {
        progress = look(*queue_);
      } while (!progress.begun ||
               (progress.outcome == daemon::kDispatchRunning && (stops || !progress.nobody)));
      if (progress.outcome == daemon::kDispatchFinished) break;
      daemon::WorkerTable placement = everywhere(subject_->room);
      for (std::size_t sm = turn % 3; sm < placement.size(); sm += 2) placement[sm] = turn % 2;
      require(queue_->resize(placement, control_), "resize");
      std::ranges::fill(placement, std::max(subject_->room / 2, 1u));
      require(queue_->resize(placement, control_), "resize");
      if (progress.outcome == daemon::kDispatchStopped)
        require(queue_->dispatch_again(control_), "again");
      wait(device_, control_);
    }
    wait(device_, stream_);
    return progress.epochs - 1;
  }

  void report(const std::vector<double>& launches, double host_epoch, double device_epoch,
              std::uint32_t retreats, const std::string& present, std::ofstream& json) {
    fmt::print(
        "{:17} native {:9.2f} us  host {:9.2f} ({:.3f})  device {:9.2f} ({:.3f})  epoch: host "
        "{:6.2f} device {:6.2f} us  registers {} {}  retreats {}  "
        "workers mid-launch: {}\n",
        name_, launches[kNative], launches[kHost], launches[kNative] / launches[kHost],
        launches[kDevice], launches[kNative] / launches[kDevice], host_epoch, device_epoch,
        subject_->info.registers, subject_->linked_registers, retreats, present);
    std::fflush(stdout);
    if (!json.is_open()) return;
    nlohmann::json row = {{"kernel", name_},
                          {"host_epoch_us", host_epoch},
                          {"device_epoch_us", device_epoch},
                          {"retreats", retreats},
                          {"workers_mid_launch", present},
                          {"equal", all_equal_},
                          {"rounds", settings_.rounds}};
    for (int way = 0; way < kWays; ++way) {
      row[fmt::format("{}_us", kWayNames[way])] = launches[static_cast<std::size_t>(way)];
    }
    json << row.dump() << "\n";
  }

  const Settings settings_;
  const std::unique_ptr<device::Device> owned_;
  device::Device& device_;
  device::Stream stream_{}, control_{};
  device::Event start_{}, stop_{};
  std::unique_ptr<daemon::ControlMemory> memory_;
  device::AddressRange arena_{};
  std::unique_ptr<daemon::WorkerQueue> host_queue_, queue_;
  Subject* subject_ = nullptr;
  std::string name_;
  std::vector<std::byte> expected_;
  bool all_equal_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string json_path;
  std::vector<std::string> names;
  CLI::App app("The worker form driven by the host and by the dispatch kernel");
  app.add_option("--device", settings.device, "as for slated")->capture_default_str();
  app.add_option("--programs", settings.programs, "folder of the programs")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "of each measurement")->capture_default_str();
  app.add_option("--json", json_path, "file for the results, a JSON object a line");
  app.add_flag("--link-only", settings.link_only, "link every kernel for sm_90, without a GPU");
  app.add_option("NAMES", names, "only these kernels");
  CLI11_PARSE(app, argc, argv);
  if (settings.link_only) {
    link_all(settings);
    return 0;
  }
  std::ofstream json;
  if (!json_path.empty()) json.open(json_path);
  Bench bench(settings);
  for (const Benchmark& benchmark : benchmarks()) {
    if (!names.empty() && std::ranges::find(names, benchmark.name) == names.end()) continue;
    bench.run(benchmark, json);
  }
  fmt::print("{}\n", bench.all_equal() ? "all results equal the native ones" : "WRONG RESULTS");
  return bench.all_equal() ? 0 : 1;
}
