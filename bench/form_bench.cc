// form_bench: the worker form's speed relative to the native one, for the kernels of kernels/ at
// sizes that fill a large GPU, by task size, as slated would launch them. One process, one stream,
// medians over rounds in which native and worker take turns. What the worker form computes must be
// native's, bit by bit, in every setting, of a sweep in its first one; or the exit status is 1.
// Prints one line a kernel; with --json FILE every measurement as a JSON line.
//
//   form_bench [--device cuda:0] [--programs build/release/bin/shared] [--rounds 5] [--json FILE]
//   [--sweep task_size,sms,workers_per_sm] [--small] [NAME...]
//
// --sweep varies one thing: blocks a task; on how many SMs, from the first on; workers on each SM.
// A JSON line of it is one round: {"kernel", "what", "value", "kernel_ms", "native_ms", "round",
// "reachable": whether slated would ever choose a task of that size}.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/form_kernels.h"
#include "bench/known_kernel.h"
#include "bench/median.h"
#include "bench/require.h"
#include "daemon/dispatch/kernel_forms.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "tools/code_file.h"

namespace {

using namespace slate;
using slate::bench::FormKernel;
using slate::bench::median;
using slate::bench::Parameter;
using slate::bench::require;

/// How the scheduler would start a worker form: all that it decides of tasks.
struct Setting {
  std::uint32_t size = 1;
  bool prefetch = true;
  bool is_usual = false;  // without knowing more of the kernel than its time

  std::string text() const {
    return fmt::format("T{} tapered{}", size, prefetch ? "" : " unfetched");
  }
};

class Bench {
 public:
  Bench(device::Device& device, std::string programs, int rounds, std::uint64_t arena_bytes)
      : device_(device), programs_(std::move(programs)), rounds_(rounds) {
    stream_ = require(device_.create_stream(0), "stream");
    start_ = require(device_.create_event(true), "event");
    stop_ = require(device_.create_event(true), "event");
    memory_ = require(daemon::ControlMemory::create(device_), "control memory");
    arena_.bytes = arena_bytes;
    arena_.base = require(device_.reserve(arena_.bytes), "reserve");
    require(device_.map(arena_), "map");
  }

  void run(const FormKernel& benchmark, std::ofstream& json) {
    load(benchmark);
    const double native_once = time_native(1);
    const int repetitions = std::clamp(static_cast<int>(10.0 / native_once), 3, 200);
    know(time_native(repetitions));
    std::vector<double> natives;
    std::map<std::string, std::vector<double>> workers;
    const std::vector<Setting> all = reachable_settings();
    compute_natively();
    for (const Setting& setting : all) compare_with_native(setting, nullptr);
    for (int round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 5 == 0) natives.push_back(time_native(repetitions));
        workers[all[i].text()].push_back(time_worker(all[i], repetitions, nullptr));
      }
    }
    report(benchmark, median(natives), workers, all, json);
    unload();
  }

  /// Each round measures native once and then every value of everything that is asked for.
  void sweep(const FormKernel& benchmark, const std::vector<std::string>& whats,
             std::ofstream& json) {
    load(benchmark);
    const int repetitions = std::clamp(static_cast<int>(10.0 / time_native(1)), 3, 200);
    know(time_native(repetitions));
    compute_natively();
    for (int round = 0; round < rounds_; ++round) {
      const double native = time_native(repetitions);
      for (const std::string& what : whats) {
        const std::vector<std::uint32_t> values = values_of(what);
        for (const std::uint32_t value : values) {
          const auto [setting, table] = what_has_value(what, value);
          const daemon::WorkerTable* const placed = table.empty() ? nullptr : &table;
          // Not every value: fetching a gigabyte takes longer than all that is timed.
          if (round == 0 && value == values.front()) compare_with_native(setting, placed);
          const double elapsed = time_worker(setting, repetitions, placed);
          const nlohmann::ordered_json row = {
              {"kernel", benchmark.name},
              {"what", what},
              {"value", value},
              {"kernel_ms", elapsed},
              {"native_ms", native},
              {"round", round},
              {"reachable", known_.chosen(setting.size) == setting.size}};
          if (json.is_open()) json << row.dump() << std::endl;
          fmt::print("{:14} {} {:4}  {:9.4f} ms, {:.3f} of native\n", benchmark.name, what, value,
                     elapsed, elapsed / native);
        }
      }
    }
    unload();
  }

 private:
  /// Task sizes by powers of two; about sixteen numbers of SMs; every number of workers that fits.
  std::vector<std::uint32_t> values_of(const std::string& what) const {
    if (what == "task_size") return {1, 2, 4, 8, 16, 32};
    const std::uint32_t most = what == "sms" ? memory_->sm_count() : worker_room_;
    const std::uint32_t step = std::max(1U, most / 16);
    std::vector<std::uint32_t> values;
    for (std::uint32_t value = step; value < most; value += step) values.push_back(value);
    values.push_back(most);
    return values;
  }

  /// The table is empty where the workers may be anywhere.
  std::pair<Setting, daemon::WorkerTable> what_has_value(const std::string& what,
                                                         std::uint32_t value) const {
    if (what == "task_size") return {setting_of(value), {}};
    const std::uint32_t sms = what == "sms" ? value : memory_->sm_count();
    daemon::WorkerTable table(memory_->sm_count(), 0);
    std::fill_n(table.begin(), sms, what == "sms" ? worker_room_ : value);
    return {setting_of(known_.usual_size()), table};
  }

  void know(double native_ms) {
    const std::uint64_t wave = std::uint64_t{native_room_} * memory_->sm_count();
    known_ = {native_ms, spec_.grid.count(), wave, worker_room_ * memory_->sm_count()};
  }
  Setting setting_of(std::uint32_t size) const {
    return {size, known_.prefetches(size), size == known_.usual_size()};
  }
  std::vector<Setting> reachable_settings() const {
    std::vector<Setting> all = {setting_of(known_.usual_size())};
    for (std::uint32_t size = 1; known_.chosen(size) == size; size *= 2) {
      if (size != all.front().size) all.push_back(setting_of(size));
    }
    return all;
  }

  /// As slated: the kernel's own module, and its forms in another.
  daemon::MadeForms load_apart(const std::string& text, const std::string& entry) {
    daemon::FormCompiler compile;
    if (device_.compiler_identity())
      compile = [this](std::string_view ptx) { return device_.compile(ptx); };
    const auto code = compile ? require(compile(text), entry) : std::vector<std::byte>();
    module_ = require(
        compile ? device_.load_module(device::ImageKind::kCubin, code)
                : device_.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text))),
        entry);
    daemon::MadeForms made =
        require(daemon::make_forms(daemon::writer_of(*require(ptx::parse(text), entry)),
                                   {.kernel = entry, .native = code, .profile = false}, compile),
                entry);
    std::vector<device::Address> addresses;
    for (const std::string& name : made.variables)
      addresses.push_back(require(device_.find_global(module_, name), name).base);
    const auto placed = require(daemon::code_with_addresses(made, addresses), entry);
    form_module_ = require(device_.load_module(made.kind, placed), entry);
    return made;
  }

  void unload() {
    device_.unload_module(form_module_);
    device_.unload_module(module_);
  }

  void load(const FormKernel& benchmark) {
    const std::string& program = benchmark.program;
    name_ = benchmark.name;
    const auto images = require(tools::ptx_in_file(programs_ + "/" + program), program);
    const daemon::MadeForms made = load_apart(images.front().text, benchmark.entry);
    const injector::KernelForms* const kernel = &made.forms;
    native_ = require(device_.find_function(module_, benchmark.entry), "native");
    native_info_ = require(device_.function_info(native_), "native");
    independent_ = kernel->analysis.independent_blocks;
    fill(benchmark);
    spec_ = {};
    spec_.grid = benchmark.grid;
    spec_.block = benchmark.block;
    spec_.dynamic_shared_bytes = benchmark.shared_bytes;
    spec_.arena = arena_;
    step_ = benchmark.step_parameter;
    step_count_ = benchmark.step_count;
    native_room_ = room_of(native_);
    worker_ = require(device_.find_function(form_module_, kernel->worker), "worker");
    worker_room_ = room_of(worker_);
    if (!kernel->compact_worker.empty()) {
      // As slated chooses: twice the shared memory may cost more workers than it saves time.
      const auto compact =
          require(device_.find_function(form_module_, kernel->compact_worker), "worker");
      if (room_of(compact) > worker_room_) worker_ = compact;
      worker_room_ = room_of(worker_);
    }
    worker_info_ = require(device_.function_info(worker_), "worker");
  }

  std::uint32_t room_of(device::Function function) {
    const auto threads = static_cast<std::uint32_t>(spec_.block.count());
    return require(device_.max_blocks_per_sm(function, threads, spec_.dynamic_shared_bytes),
                   "room");
  }

  /// Puts the buffers into the arena, one after the other.
  void fill(const FormKernel& benchmark) {
    std::uint64_t at = arena_.base;
    parameters_.clear();
    written_.clear();
    for (std::size_t i = 0; i < benchmark.parameters.size(); ++i) {
      const Parameter& parameter = benchmark.parameters[i];
      const auto& place = native_info_.parameters[i];
      parameters_.resize(place.offset + place.size);
      if (parameter.buffer_bytes == 0) {
        std::memcpy(parameters_.data() + place.offset, parameter.value.data(), place.size);
        continue;
      }
      std::memcpy(parameters_.data() + place.offset, &at, sizeof(at));
      const Buffer buffer{at, parameter.buffer_bytes, words_of(parameter)};
      at += (parameter.buffer_bytes + 511) / 512 * 512;
      if (at > arena_.base + arena_.bytes) {
        fmt::print(stderr, "{} is too large\n", benchmark.name);
        std::exit(1);
      }
      put_back(buffer);
      if (parameter.is_written) written_.push_back(buffer);
    }
  }

  struct Buffer {
    std::uint64_t at = 0, bytes = 0;
    std::vector<std::uint32_t> words;  // again and again; empty: all 0
  };

  /// Repeated after a while: the programs' inputs look everywhere alike, and making them takes
  /// time.
  static std::vector<std::uint32_t> words_of(const Parameter& parameter) {
    constexpr std::uint64_t kMostWords = 1 << 26;
    if (!parameter.word) return {};
    std::vector<std::uint32_t> words(std::min(parameter.buffer_bytes / 4, kMostWords));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = parameter.word(i);
    return words;
  }

  /// As it was before the first launch.
  void put_back(const Buffer& buffer) {
    if (buffer.words.empty()) {
      require(device_.fill(buffer.at, 0, 0, {buffer.bytes, 1}, stream_), "fill");
    } else {
      const std::uint64_t piece = buffer.words.size() * 4;
      for (std::uint64_t done = 0; done < buffer.bytes; done += piece) {
        const std::uint64_t bytes = std::min(piece, buffer.bytes - done);
        require(device_.copy(Place::on_device(buffer.at + done),
                             Place::on_host(buffer.words.data()), {bytes, 1}, stream_),
                "copy");
      }
    }
    wait();
  }

  /// What a few launches make of the buffers that they write.
  template <typename Launch>
  std::vector<std::vector<std::uint32_t>> results_of(Launch launch) {
    constexpr std::uint32_t kLaunches = 3;
    for (const Buffer& buffer : written_) put_back(buffer);
    for (std::uint32_t i = 0; i < kLaunches; ++i) {
      set_step(i, kLaunches);
      launch();
    }
    wait();
    std::vector<std::vector<std::uint32_t>> results;
    for (const Buffer& buffer : written_) {
      results.emplace_back(buffer.bytes / 4);
      require(device_.copy(Place::on_host(results.back().data()), Place::on_device(buffer.at),
                           {buffer.bytes, 1}, stream_),
              "copy");
    }
    wait();
    return results;
  }

  void compute_natively() {
    native_results_ = results_of([this] { launch_native(); });
  }
  void compare_with_native(const Setting& setting, const daemon::WorkerTable* table) {
    daemon::WorkerQueue queue(device_, *memory_);
    daemon::FormLaunch launch = worker_launch(setting);
    if (results_of([&] { launch_worker(queue, launch, table); }) == native_results_) return;
    fmt::print(stderr, "{}: {} computes something else than native\n", name_, setting.text());
    std::exit(1);
  }

  void wait() {
    const auto event = require(device_.create_event(false), "event");
    require(device_.record(event, stream_), "record");
    while (!require(device_.query(event), "kernel")) {
      device_.wait_for_progress(std::chrono::milliseconds(10));
    }
    device_.destroy_event(event);
  }

  template <typename Launch>
  double time(int repetitions, Launch launch) {
    const auto count = static_cast<std::uint32_t>(repetitions);
    set_step(0, count);
    launch();
    require(device_.record(start_, stream_), "record");
    for (std::uint32_t i = 0; i < count; ++i) {
      set_step(i, count);
      launch();
    }
    require(device_.record(stop_, stream_), "record");
    wait();
    return double{require(device_.elapsed_ms(start_, stop_), "elapsed")} / repetitions;
  }

  /// The columns of `count` launches are spread over all: the first ones have the most to do.
  void set_step(std::uint32_t index, std::uint32_t count) {
    if (step_ < 0) return;
    const auto column =
        static_cast<std::uint32_t>(std::uint64_t{index} * step_count_ / std::max(count, 1u));
    std::memcpy(
        parameters_.data() + native_info_.parameters[static_cast<std::size_t>(step_)].offset,
        &column, sizeof(column));
  }

  void launch_native() {
    spec_.function = native_;
    spec_.parameters = parameters_;
    require(device_.launch(spec_, stream_), "launch");
  }
  double time_native(int repetitions) {
    return time(repetitions, [this] { launch_native(); });
  }

  daemon::FormLaunch worker_launch(const Setting& setting) const {
    daemon::FormLaunch launch;
    launch.spec = spec_;
    launch.spec.function = worker_;
    launch.parameter_offset = worker_info_.parameters.back().offset;
    launch.workers_per_sm = worker_room_;
    launch.independent_blocks = independent_;
    launch.prefetch = setting.prefetch;
    launch.task_sizes = daemon::task_sizes(setting.size);
    return launch;
  }
  void launch_worker(daemon::WorkerQueue& queue, daemon::FormLaunch& launch,
                     const daemon::WorkerTable* table) {
    launch.spec.parameters = parameters_;
    require(queue.launch(launch, stream_, table), "worker launch");
  }
  double time_worker(const Setting& setting, int repetitions, const daemon::WorkerTable* table) {
    daemon::WorkerQueue queue(device_, *memory_);
    daemon::FormLaunch launch = worker_launch(setting);
    return time(repetitions, [&] { launch_worker(queue, launch, table); });
  }

  void report(const FormKernel& benchmark, double native,
              const std::map<std::string, std::vector<double>>& workers,
              const std::vector<Setting>& all, std::ofstream& json) {
    std::string best;
    double best_ratio = 0;
    std::string line;
    for (const Setting& setting : all) {
      const double ratio = native / median(workers.at(setting.text()));
      nlohmann::json row = {
          {"kernel", benchmark.name},  {"native_ms", native}, {"setting", setting.text()},
          {"usual", setting.is_usual}, {"ratio", ratio},      {"rounds", rounds_}};
      if (json.is_open()) json << row.dump() << "\n";
      line += fmt::format("  {} {:.3f}", setting.text(), ratio);
      if (ratio > best_ratio) {
        best_ratio = ratio;
        best = setting.text();
      }
    }
    log_sum_ += std::log(best_ratio);
    ++kernels_;
    fmt::print(
        "{:14} native {:8.4f} ms  registers {}->{} blocks/SM {}->{}  best {:.3f} ({})\n  {}\n",
        benchmark.name, native, native_info_.registers, worker_info_.registers, native_room_,
        worker_room_, best_ratio, best, line);
    std::fflush(stdout);
  }

 public:
  double geometric_mean() const { return std::exp(log_sum_ / std::max(kernels_, 1)); }

 private:
  device::Device& device_;
  const std::string programs_;
  const int rounds_;
  device::Stream stream_{};
  device::Event start_{}, stop_{};
  std::unique_ptr<daemon::ControlMemory> memory_;
  device::AddressRange arena_{};
  device::Module module_{}, form_module_{};
  device::Function native_{}, worker_{};
  device::FunctionInfo native_info_, worker_info_;
  bench::KnownKernel known_;
  std::uint32_t native_room_ = 0, worker_room_ = 0;
  bool independent_ = false;
  int step_ = -1;
  std::uint32_t step_count_ = 0;
  device::LaunchSpec spec_;
  std::vector<std::byte> parameters_;
  std::vector<Buffer> written_;
  std::vector<std::vector<std::uint32_t>> native_results_;
  std::string name_;
  double log_sum_ = 0;
  int kernels_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "cuda:0";
  std::string programs = "build/release/bin/shared";
  std::string json_path;
  int rounds = 5;
  std::vector<std::string> names, sweeps;
  bool small = false;
  CLI::App app("Speed of the worker form relative to the native one");
  app.add_option("--device", device_name, "as for slated")->capture_default_str();
  app.add_option("--programs", programs, "folder of the built programs")->capture_default_str();
  app.add_option("--rounds", rounds, "rounds of each measurement")->capture_default_str();
  app.add_option("--json", json_path, "file for every measurement, a JSON object a line");
  app.add_option("--sweep", sweeps, "instead of the settings: task_size, sms, workers_per_sm")
      ->delimiter(',')
      ->check(CLI::IsMember({"task_size", "sms", "workers_per_sm"}));
  app.add_flag("--small", small, "sizes that a simulated GPU finishes at once");
  app.add_option("NAMES", names, "only these kernels");
  CLI11_PARSE(app, argc, argv);
  const auto device = require(device::open_device(device_name), device_name);
  std::ofstream json;
  if (!json_path.empty()) json.open(json_path);
  Bench bench(*device, programs, rounds, small ? 256ull << 20 : 8ull << 30);
  for (const FormKernel& benchmark : slate::bench::form_kernels(small)) {
    if (!names.empty() && std::ranges::find(names, benchmark.name) == names.end()) continue;
    if (sweeps.empty()) {
      bench.run(benchmark, json);
    } else {
      bench.sweep(benchmark, sweeps, json);
    }
  }
  if (sweeps.empty()) fmt::print("geometric mean of the best {:.3f}\n", bench.geometric_mean());
  return 0;
}
