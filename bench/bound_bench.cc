// What it costs to find out whether a launch keeps to the bounds of its kernel's copy without
// checks (injector/fence/access_bounds.h). The mean of the kernels in a file, whose launches differ
// from one to the next by a number of 32 bits that rises:
//   plain     hold(), from the beginning
//   changed   BoundCheck, which computes only what follows from that number
//   answers   BoundAnswers, which the engine asks
//
//   bound_bench [--benchmark_...] [FILE...]      by default the programs of kernels/
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/files_in.h"
#include "daemon/dispatch/form_text.h"
#include "injector/analysis/parameter_layout.h"
#include "injector/fence/bound_answers.h"
#include "injector/fence/bound_check.h"
#include "tools/code_file.h"

namespace slate {
namespace {

constexpr std::uint32_t kSize = 256;  // of arrays along an axis, and the numbers that rise
constexpr std::uint32_t kEdge = 16;   // of blocks, and of the grid

/// A kernel, with the launch that its copy was made for.
struct Kernel {
  Kernel(const ptx::Module& module, const ptx::Function& function) {
    request.kernel = function.name;
    request.fence = daemon::Fencing::kKernel;
    daemon::FirstLaunch& launch = request.launch;
    launch.is_known = true;
    launch.low = std::uint64_t{0x7f} << 40;
    launch.bytes = 1 << 30;
    for (int axis = 0; axis < 3; ++axis)
      launch.grid[axis] = launch.block[axis] = axis < 2 ? kEdge : 1;
    const injector::ParameterLayout layout(function);
    for (std::uint32_t i = 0; i < function.parameters.size(); ++i) {
      const std::uint64_t bytes = function.parameters[i].bytes;
      launch.parameters.resize(layout.offset(i) + bytes);
      std::byte* const to = launch.parameters.data() + layout.offset(i);
      const std::uint64_t pointer = launch.low + (std::uint64_t{i} << 24);
      if (bytes == sizeof(pointer)) std::memcpy(to, &pointer, sizeof(pointer));
      if (bytes != sizeof(kSize)) continue;
      std::memcpy(to, &kSize, sizeof(kSize));
      rising = static_cast<std::uint32_t>(layout.offset(i));
    }
    auto text = daemon::write_forms(module, request);
    if (text) bounds = std::move(text->bounds);
    check = std::make_unique<injector::BoundCheck>(bounds);
    answers = std::make_unique<injector::BoundAnswers>(bounds);
    numbers.resize(check->inputs());
  }

  /// The next launch: the last number of 32 bits is another one.
  injector::LaunchValues next() {
    daemon::FirstLaunch& first = request.launch;
    turn = (turn + 1) % kSize;
    if (rising + sizeof(turn) <= first.parameters.size())
      std::memcpy(first.parameters.data() + rising, &turn, sizeof(turn));
    injector::LaunchValues launch{
        .parameters = first.parameters, .low = first.low, .bytes = first.bytes};
    std::ranges::copy(first.grid, launch.grid);
    std::ranges::copy(first.block, launch.block);
    return launch;
  }

  daemon::FormRequest request;
  injector::AccessBounds bounds;
  std::unique_ptr<injector::BoundCheck> check;
  std::unique_ptr<injector::BoundAnswers> answers;
  std::vector<std::uint64_t> numbers;
  std::uint32_t rising = 0;  // offset of the parameter that changes
  std::uint32_t turn = 0;
};

using Kernels = std::vector<Kernel>;

Kernels kernels_in(const std::string& file) {
  Kernels kernels;
  const auto images = tools::ptx_in_file(file);
  if (!images) return kernels;
  for (const tools::PtxImage& image : *images) {
    const auto module = ptx::parse(image.text);
    if (!module) continue;
    for (const ptx::Function& function : (*module)->functions) {
      if (!function.is_entry) continue;
      Kernel kernel(**module, function);
      if (!kernel.bounds.claims.empty()) kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

template <typename Ask>
void measure(const std::string& what, Kernels& kernels, Ask ask) {
  benchmark::RegisterBenchmark(what.c_str(), [&kernels, ask](benchmark::State& state) {
    for (auto _ : state) {
      for (Kernel& kernel : kernels) benchmark::DoNotOptimize(ask(kernel, kernel.next()));
    }
    std::size_t steps = 0;
    for (const Kernel& kernel : kernels) steps += kernel.bounds.steps.size();
    const auto count = static_cast<double>(kernels.size());
    state.counters["kernels"] = count;
    state.counters["steps"] = static_cast<double>(steps) / count;
    state.counters["per_kernel"] = benchmark::Counter(
        count, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  });
}

}  // namespace
}  // namespace slate

int main(int argc, char** argv) {
  using slate::Kernel;
  using slate::injector::LaunchValues;
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> files(argv + 1, argv + argc);
  if (files.empty()) files = slate::bench::files_in(SLATE_PROGRAMS);
  std::vector<std::pair<std::string, slate::Kernels>> all;
  for (const std::string& file : files) {
    slate::Kernels kernels = slate::kernels_in(file);
    if (kernels.empty()) continue;
    all.emplace_back(std::filesystem::path(file).filename(), std::move(kernels));
  }
  if (all.empty()) {
    fmt::print(stderr, "no PTX: build the target slate_kernels, or name files\n");
    return 1;
  }
  for (auto& [name, kernels] : all) {
    slate::measure("plain/" + name, kernels, [](Kernel& kernel, const LaunchValues& launch) {
      return slate::injector::hold(kernel.bounds, launch);
    });
    slate::measure("changed/" + name, kernels, [](Kernel& kernel, const LaunchValues& launch) {
      return kernel.check->read(launch, kernel.numbers) &&
             kernel.check->hold(launch, kernel.numbers);
    });
    slate::measure("answers/" + name, kernels, [](Kernel& kernel, const LaunchValues& launch) {
      return kernel.answers->hold(launch);
    });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
