// form_bench: the worker form's speed relative to the native one, for the kernels of kernels/ at
// sizes that fill a large GPU, by task size. One process, one stream, medians over rounds in which
// native and worker take turns. Prints one line a kernel; with --json FILE every measurement as a
// JSON line.
//
//   form_bench [--device cuda:0] [--programs build/release/bin/shared] [--rounds 5] [--json FILE]
//   [--sweep task_size,sms,workers_per_sm] [--small] [NAME...]
//
// --sweep varies one thing: blocks a task; on how many SMs, from the first on; workers on each SM.
// A JSON line of it is one round: {"kernel", "what", "value", "kernel_ms", "native_ms", "round"}.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/form_kernels.h"
#include "bench/median.h"
#include "bench/require.h"
#include "daemon/dispatch/form_module.h"
#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "tools/code_file.h"

namespace {

using namespace slate;
using slate::bench::FormKernel;
using slate::bench::median;
using slate::bench::Parameter;
using slate::bench::require;

struct Setting {
  daemon::TaskSizes sizes;
  bool is_static = true;
  bool prefetch = true;
  bool is_even = false;
  std::string text() const {
    return fmt::format("T{}{}{}{}{}", sizes.size, is_even ? " even" : "",
                       sizes.quarter_blocks != 0  ? " tapered"
                       : sizes.single_blocks != 0 ? " singles"
                                                  : "",
                       is_static ? "" : " dynamic", prefetch ? "" : " unfetched");
  }
};

/// `blocks_each`: of the grid, by worker. Besides powers of two, sizes with which all workers come
/// to the same number of tasks: they end together, without smaller tasks at the end.
std::vector<Setting> settings(double blocks_each) {
  std::vector<Setting> all;
  for (const int rounds : {5, 10, 20}) {
    const auto size = static_cast<std::uint32_t>(std::ceil(blocks_each / rounds));
    if (size > 2) all.push_back({{.size = size}, true, true, true});
  }
  for (const std::uint32_t size : {1u, 2u, 4u, 8u, 16u, 32u}) {
    all.push_back({{.size = size}, true, true});
    if (size > 1) {
      all.push_back(
          {{.size = size, .quarter_blocks = size, .single_blocks = std::max(size / 4, 1u)}});
      all.push_back({{.size = size, .quarter_blocks = 0, .single_blocks = std::max(size / 2, 1u)}});
    }
  }
  for (const std::uint32_t size : {1u, 4u, 16u}) {
    all.push_back({{.size = size}, false, true});
    all.push_back({{.size = size}, true, false});
  }
  return all;
}

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
    std::vector<double> natives;
    std::map<std::string, std::vector<double>> workers;
    const std::uint64_t places = std::uint64_t{worker_room_} * memory_->sm_count();
    const std::vector<Setting> all =
        settings(static_cast<double>(spec_.grid.count()) / static_cast<double>(places));
    for (int round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i % 5 == 0) natives.push_back(time_native(repetitions));
        workers[all[i].text()].push_back(time_worker(all[i], repetitions));
      }
    }
    report(benchmark, median(natives), workers, all, json);
    device_.unload_module(module_);
  }

  /// Each round measures native once and then every value of everything that is asked for.
  void sweep(const FormKernel& benchmark, const std::vector<std::string>& whats,
             std::ofstream& json) {
    load(benchmark);
    const int repetitions = std::clamp(static_cast<int>(10.0 / time_native(1)), 3, 200);
    for (int round = 0; round < rounds_; ++round) {
      const double native = time_native(repetitions);
      for (const std::string& what : whats) {
        for (const std::uint32_t value : values_of(what)) {
          const double elapsed = time_value(what, value, repetitions);
          const nlohmann::ordered_json row = {{"kernel", benchmark.name}, {"what", what},
                                              {"value", value},           {"kernel_ms", elapsed},
                                              {"native_ms", native},      {"round", round}};
          if (json.is_open()) json << row.dump() << std::endl;
          fmt::print("{:14} {} {:4}  {:9.4f} ms, {:.3f} of native\n", benchmark.name, what, value,
                     elapsed, elapsed / native);
        }
      }
    }
    device_.unload_module(module_);
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

  double time_value(const std::string& what, std::uint32_t value, int repetitions) {
    if (what == "task_size") return time_worker({.sizes = {.size = value}}, repetitions);
    const std::uint32_t sms = what == "sms" ? value : memory_->sm_count();
    daemon::WorkerTable table(memory_->sm_count(), 0);
    std::fill_n(table.begin(), sms, what == "sms" ? worker_room_ : value);
    return time_worker({.sizes = {.size = 0}}, repetitions, &table);
  }

  void load(const FormKernel& benchmark) {
    const std::string& program = benchmark.program;
    const auto images = require(tools::ptx_in_file(programs_ + "/" + program), program);
    const auto parsed = require(ptx::parse(images.front().text), program);
    const auto forms =
        require(daemon::load_forms(device_, *parsed,
                                   [&](std::string_view text) {
                                     return device_.load_module(device::ImageKind::kPtx,
                                                                std::as_bytes(std::span(text)));
                                   }),
                program);
    const injector::KernelForms* kernel = forms.find(benchmark.entry);
    module_ = forms.module;
    native_ = require(device_.find_function(module_, benchmark.entry), "native");
    worker_ = require(device_.find_function(module_, kernel->worker), "worker");
    native_info_ = require(device_.function_info(native_), "native");
    worker_info_ = require(device_.function_info(worker_), "worker");
    independent_ = kernel->analysis.independent_blocks;
    fill(benchmark);
    spec_ = {};
    spec_.grid = benchmark.grid;
    spec_.block = benchmark.block;
    spec_.dynamic_shared_bytes = benchmark.shared_bytes;
    spec_.arena = arena_;
    step_ = benchmark.step_parameter;
    const auto threads = static_cast<std::uint32_t>(benchmark.block.count());
    native_room_ =
        require(device_.max_blocks_per_sm(native_, threads, benchmark.shared_bytes), "room");
    worker_room_ =
        require(device_.max_blocks_per_sm(worker_, threads, benchmark.shared_bytes), "room");
  }

  void fill(const FormKernel& benchmark) {
    constexpr std::uint64_t kPiece = 16 << 20;
    std::mt19937_64 random(1);
    std::vector<float> as_floats(kPiece / 4);
    std::vector<std::uint32_t> as_words(kPiece / 4);
    for (float& f : as_floats) f = 0.5f + static_cast<float>(random() >> 40) * 0x1p-20f;
    for (std::uint32_t& w : as_words) w = static_cast<std::uint32_t>(random());
    std::uint64_t at = arena_.base;
    parameters_.clear();
    for (std::size_t i = 0; i < benchmark.parameters.size(); ++i) {
      const Parameter& parameter = benchmark.parameters[i];
      const auto& place = native_info_.parameters[i];
      parameters_.resize(place.offset + place.size);
      if (parameter.buffer_bytes == 0) {
        std::memcpy(parameters_.data() + place.offset, parameter.value.data(), place.size);
        continue;
      }
      std::memcpy(parameters_.data() + place.offset, &at, sizeof(at));
      const void* from =
          parameter.floats ? static_cast<const void*>(as_floats.data()) : as_words.data();
      for (std::uint64_t done = 0; done < parameter.buffer_bytes; done += kPiece) {
        const std::uint64_t bytes = std::min(kPiece, parameter.buffer_bytes - done);
        require(device_.copy_to_device(at + done, 0, from, 0, {bytes, 1}, stream_), "copy");
      }
      at += (parameter.buffer_bytes + 511) / 512 * 512;
    }
    if (at > arena_.base + arena_.bytes) fmt::print(stderr, "{} is too large\n", benchmark.name);
    wait();
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
    launch(0);
    require(device_.record(start_, stream_), "record");
    for (int i = 0; i < repetitions; ++i) launch(static_cast<std::uint32_t>(i));
    require(device_.record(stop_, stream_), "record");
    wait();
    return double{require(device_.elapsed_ms(start_, stop_), "elapsed")} / repetitions;
  }

  void set_step(std::uint32_t step) {
    if (step_ < 0) return;
    const std::uint32_t column = step * 8 % (spec_.grid.x * 4);  // a sample of all columns
    std::memcpy(
        parameters_.data() + native_info_.parameters[static_cast<std::size_t>(step_)].offset,
        &column, sizeof(column));
  }

  double time_native(int repetitions) {
    spec_.function = native_;
    return time(repetitions, [&](std::uint32_t step) {
      set_step(step);
      spec_.parameters = parameters_;
      require(device_.launch(spec_, stream_), "launch");
    });
  }

  double time_worker(const Setting& setting, int repetitions,
                     const daemon::WorkerTable* table = nullptr) {
    daemon::WorkerQueue queue(device_, *memory_);
    daemon::FormLaunch launch;
    launch.spec = spec_;
    launch.spec.function = worker_;
    launch.parameter_offset = worker_info_.parameters.back().offset;
    launch.workers_per_sm = worker_room_;
    launch.independent_blocks = independent_ && setting.is_static;
    launch.prefetch = setting.prefetch;
    if (setting.sizes.size != 0) launch.task_sizes = setting.sizes;
    const double elapsed = time(repetitions, [&](std::uint32_t step) {
      set_step(step);
      launch.spec.parameters = parameters_;
      require(queue.launch(launch, stream_, table), "worker launch");
    });
    return elapsed;
  }

  void report(const FormKernel& benchmark, double native,
              const std::map<std::string, std::vector<double>>& workers,
              const std::vector<Setting>& all, std::ofstream& json) {
    std::string best;
    double best_ratio = 0;
    std::string line;
    for (const Setting& setting : all) {
      const double ratio = native / median(workers.at(setting.text()));
      nlohmann::json row = {{"kernel", benchmark.name},
                            {"native_ms", native},
                            {"setting", setting.text()},
                            {"ratio", ratio},
                            {"rounds", rounds_}};
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
  device::Module module_{};
  device::Function native_{}, worker_{};
  device::FunctionInfo native_info_, worker_info_;
  std::uint32_t native_room_ = 0, worker_room_ = 0;
  bool independent_ = false;
  int step_ = -1;
  device::LaunchSpec spec_;
  std::vector<std::byte> parameters_;
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
