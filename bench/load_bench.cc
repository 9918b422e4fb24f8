// load_bench: what a program's PTX module costs until its kernels can be launched: compiled by the
// driver (its cache off), compiled by the assembler, and found in the compile cache; and whether
// the kernels use the same registers both ways. Medians over rounds, one thread. The exit status is
// 1 when registers differ.
//
//   load_bench [--device cuda:0] [--programs build/release/bin/shared] [--ptxas PATH] [--rounds 5]
//   [--json FILE] [NAME...]
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/median.h"
#include "bench/place.h"
#include "bench/require.h"
#include "daemon/engine/compiler.h"
#include "device/device.h"
#include "injector/ptx/module.h"
#include "tools/code_file.h"

namespace {

using namespace slate;
using namespace slate::bench;
namespace fs = std::filesystem;

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

struct Totals {
  double driver = 0, compile = 0, hit = 0;
  std::size_t kernels = 0;
  bool registers_equal = true;
};

class Bench {
 public:
  Bench(device::Device& device, fs::path cache, int rounds)
      : device_(device),
        compiler_(device, require(cache::CompileCache::open(std::move(cache), 1 << 30), "cache")),
        rounds_(rounds) {}

  nlohmann::json run(const std::string& name, const std::string& ptx) {
    name_ = name;
    text_ = ptx;
    kernels_.clear();
    const auto parsed = require(ptx::parse(ptx), name);
    for (const ptx::Function& function : parsed->functions) {
      if (function.is_entry) kernels_.emplace_back(function.name);
    }
    const auto by_driver = [this] {
      return device_.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text_)));
    };
    const auto by_cache = [this]() -> Result<device::Module> {
      const auto loaded = compiler_.load(std::as_bytes(std::span(text_)));
      if (!loaded) return std::unexpected(loaded.error());
      return loaded->module;
    };
    const auto driver_registers = registers(by_driver);
    const auto cache_registers = registers(by_cache);  // fills the cache, too
    std::vector<double> driver, compile, hit;
    for (int round = 0; round < rounds_; ++round) {
      driver.push_back(time_of_load(by_driver));
      compile.push_back(milliseconds([&] { require(device_.compile(text_), name_); }));
      for (int i = 0; i < 5; ++i) hit.push_back(time_of_load(by_cache));
    }
    return report(median(driver), median(compile), median(hit), driver_registers, cache_registers);
  }

  Totals totals;
  cache::Statistics statistics() const { return compiler_.cache_statistics().value(); }

 private:
  using Load = std::function<Result<device::Module>()>;

  /// Until the kernels can be launched: the driver loads what is asked for only.
  double time_of_load(const Load& load) {
    device::Module module{};
    const double time = milliseconds([&] {
      module = require(load(), name_);
      for (const std::string& kernel : kernels_) {
        require(device_.find_function(module, kernel), kernel);
      }
    });
    device_.unload_module(module);
    return time;
  }

  std::vector<std::uint32_t> registers(const Load& load) {
    const device::Module module = require(load(), name_);
    std::vector<std::uint32_t> counts;
    for (const std::string& kernel : kernels_) {
      const auto function = require(device_.find_function(module, kernel), kernel);
      counts.push_back(require(device_.function_info(function), kernel).registers);
    }
    device_.unload_module(module);
    return counts;
  }

  nlohmann::json report(double driver, double compile, double hit,
                        const std::vector<std::uint32_t>& by_driver,
                        const std::vector<std::uint32_t>& by_cache) {
    const bool equal = by_driver == by_cache;
    fmt::print(
        "{:20} {:3} kernels {:7} bytes  driver {:8.2f} ms  compile {:8.2f} ms  hit {:7.3f} "
        "ms ({:.3f} a kernel)  registers {}{}\n",
        name_, kernels_.size(), text_.size(), driver, compile, hit,
        hit / static_cast<double>(std::max<std::size_t>(kernels_.size(), 1)),
        fmt::join(by_driver, " "),
        equal ? " equal" : fmt::format(" BUT {}", fmt::join(by_cache, " ")));
    std::fflush(stdout);
    totals.driver += driver;
    totals.compile += compile;
    totals.hit += hit;
    totals.kernels += kernels_.size();
    totals.registers_equal = totals.registers_equal && equal;
    return {{"program", name_},    {"kernels", kernels_},           {"ptx_bytes", text_.size()},
            {"driver_ms", driver}, {"compile_ms", compile},         {"hit_ms", hit},
            {"rounds", rounds_},   {"driver_registers", by_driver}, {"cache_registers", by_cache}};
  }

  device::Device& device_;
  daemon::Compiler compiler_;
  const int rounds_;
  std::string name_, text_;
  std::vector<std::string> kernels_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "cuda:0";
  std::string programs = "build/release/bin/shared";
  std::string json_path;
  device::OpenSettings settings;
  int rounds = 5;
  std::vector<std::string> names;
  CLI::App app("Time until a module's kernels can be launched, cold and warm");
  app.add_option("--device", device_name, "as for slated")->capture_default_str();
  app.add_option("--programs", programs, "folder of the built programs")->capture_default_str();
  app.add_option("--ptxas", settings.assembler, "the assembler; empty: looked for");
  app.add_option("--rounds", rounds, "rounds of each measurement")->check(CLI::Range(1, 1000));
  app.add_option("--json", json_path, "file for the results, a JSON object a line");
  app.add_option("NAMES", names, "only these programs");
  CLI11_PARSE(app, argc, argv);
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);
  const auto device = require(device::open_device(device_name, settings), device_name);
  fmt::print("{}\n", require(device->compiler_identity(), "compiler"));
  if (names.empty()) {
    for (const auto& each : fs::directory_iterator(programs)) {
      if (each.is_regular_file()) names.push_back(each.path().filename());
    }
    std::ranges::sort(names);
  }
  std::ofstream json;
  if (!json_path.empty()) json.open(json_path);
  const bench::Place place;
  Bench bench(*device, place.path, rounds);
  for (const std::string& name : names) {
    const auto images = tools::ptx_in_file((fs::path(programs) / name).string());
    if (!images) continue;  // not a CUDA program
    for (const tools::PtxImage& image : *images) {
      const nlohmann::json row = bench.run(name, image.text);
      if (json.is_open()) json << row.dump() << "\n";
    }
  }
  const Totals& sum = bench.totals;
  const auto kernels = static_cast<double>(std::max<std::size_t>(sum.kernels, 1));
  const cache::Statistics cached = bench.statistics();
  fmt::print(
      "{} kernels, ms a kernel: driver {:.2f}, compile {:.2f}, hit {:.3f}; registers {}; "
      "cache: {} hits, {} misses, {} stores\n",
      sum.kernels, sum.driver / kernels, sum.compile / kernels, sum.hit / kernels,
      sum.registers_equal ? "equal" : "DIFFER", cached.hits, cached.misses, cached.stores);
  return sum.registers_equal ? 0 : 1;
}
