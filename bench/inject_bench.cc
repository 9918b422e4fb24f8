// What a module costs on its way to the device, in microseconds: parsing its PTX, parsing and
// adding all forms, and, when that has been compiled before, making the key of the injected text
// and finding its machine code (compiled once here, by ptxas; without ptxas those rows are
// missing). us_per_kernel is the time over the number of kernels in the module.
//
//   inject_bench [--benchmark_...] [FILE...]      by default the programs of kernels/
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/files_in.h"
#include "bench/place.h"
#include "injector/cache/cache.h"
#include "injector/forms/inject.h"
#include "tools/code_file.h"

namespace slate {
namespace {

namespace fs = std::filesystem;

struct Subject {
  std::string name;
  std::string text;
  injector::InjectedModule injected;
  std::vector<std::byte> machine_code;  // empty without ptxas
};

/// A directory for the cache and for ptxas's files, which goes with it.
struct CachePlace : bench::Place {
  CachePlace() {
    auto opened = cache::CompileCache::open(path / "cache", 1 << 30);
    if (!opened) std::abort();
    cache = std::move(*opened);
  }
  std::unique_ptr<cache::CompileCache> cache;
};

std::vector<std::byte> assemble(const std::string& ptx, const fs::path& folder) {
  const fs::path in = folder / "in.ptx";
  const fs::path out = folder / "out.cubin";
  fs::remove(out);
  std::ofstream(in) << ptx;
  const std::string command = fmt::format("'" SLATE_PTXAS "' -arch=sm_90 -o '{}' '{}' 2>/dev/null",
                                          out.string(), in.string());
  if (std::system(command.c_str()) != 0) return {};
  std::ifstream file(out, std::ios::binary);
  std::ostringstream contents;
  contents << file.rdbuf();
  const std::string bytes = contents.str();
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

cache::Key key_of(const std::string& ptx) {
  return cache::KeyBuilder().add("compiler", "inject_bench").add("ptx", ptx).finish();
}

Result<injector::InjectedModule> parse_and_inject(const std::string& text) {
  const auto module = ptx::parse(text);
  if (!module) return std::unexpected(module.error());
  return injector::inject(**module, {});
}

/// Every PTX image of `files` that takes forms; what cannot be read is said and left out.
std::vector<Subject> load(const std::vector<std::string>& files, const CachePlace& place) {
  std::vector<Subject> subjects;
  for (const std::string& file : files) {
    const auto images = tools::ptx_in_file(file);
    if (!images) {
      fmt::print(stderr, "{}\n", images.error().message);
      continue;
    }
    for (const tools::PtxImage& image : *images) {
      auto injected = parse_and_inject(image.text);
      if (!injected || injected->kernels.empty()) continue;
      Subject subject{fs::path(file).filename(), image.text, std::move(*injected), {}};
      subject.machine_code = assemble(subject.injected.ptx, place.path);
      if (!subject.machine_code.empty() &&
          !place.cache->store(key_of(subject.injected.ptx), subject.machine_code)) {
        std::abort();
      }
      subjects.push_back(std::move(subject));
    }
  }
  return subjects;
}

void count(benchmark::State& state, const Subject& subject, std::size_t bytes) {
  const auto kernels = static_cast<double>(subject.injected.kernels.size());
  state.counters["kernels"] = kernels;
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["per_kernel"] = benchmark::Counter(
      kernels, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void measure(const Subject& subject, const CachePlace& place) {
  benchmark::RegisterBenchmark(("parse/" + subject.name).c_str(), [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ptx::parse(subject.text));
    count(state, subject, subject.text.size());
  })->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark(("parse_and_inject/" + subject.name).c_str(),
                               [&](benchmark::State& state) {
                                 for (auto _ : state)
                                   benchmark::DoNotOptimize(parse_and_inject(subject.text));
                                 count(state, subject, subject.injected.ptx.size());
                               })
      ->Unit(benchmark::kMicrosecond);
  if (subject.machine_code.empty()) return;
  benchmark::RegisterBenchmark(("find/" + subject.name).c_str(), [&](benchmark::State& state) {
    for (auto _ : state) {
      const auto found = place.cache->find(key_of(subject.injected.ptx));
      if (!found) state.SkipWithError("not in the cache");
    }
    count(state, subject, subject.machine_code.size());
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace slate

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::vector<std::string> files(argv + 1, argv + argc);
  const slate::CachePlace place;
  const auto subjects =
      slate::load(files.empty() ? slate::bench::files_in(SLATE_PROGRAMS) : files, place);
  if (subjects.empty()) {
    fmt::print(stderr, "no PTX: build the target slate_kernels, or name files\n");
    return 1;
  }
  for (const slate::Subject& subject : subjects) slate::measure(subject, place);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
