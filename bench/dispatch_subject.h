// What dispatch_bench measures: kernels of the built programs, each loaded natively, in the worker
// form, and in the worker form linked with the dispatch kernel. Failures end the process.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/require.h"
#include "device/device.h"

namespace slate::bench {

/// Ends the process when the stream's work has not finished in 20 seconds.
void wait(device::Device& device, device::Stream stream);

struct Settings {
  std::string device = "cuda:0";
  std::string programs = SLATE_PROGRAMS;
  int rounds = 7;
  bool link_only = false;
};

/// A parameter: a buffer of random floats or a word.
struct SubjectParameter {
  std::uint64_t floats = 0;
  std::uint32_t word = 0;
  bool written = false;
};

struct Benchmark {
  std::string name, program, entry;
  device::Dim3 grid, block;
  std::vector<SubjectParameter> parameters;
};

std::vector<Benchmark> benchmarks();

/// Links every kernel for sm_90; needs no GPU.
void link_all(const Settings& settings);

/// One kernel on the device: buffers, pristine copies of those that it writes, all forms of it.
class Subject {
 public:
  Subject(device::Device& device, device::Stream stream, device::AddressRange arena,
          const Settings& settings, const Benchmark& benchmark);
  ~Subject() {
    for (const device::Module module : modules_) device_.unload_module(module);
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// Gives the outputs their first contents back, in stream order.
  void restore();
  /// What the outputs hold once the stream is there. The caller waits.
  void download(std::vector<std::byte>& to);

  device::Function native{}, worker{}, dispatch{};
  device::FunctionInfo info;  // of the worker form
  std::uint32_t linked_registers = 0;
  std::uint32_t room = 0;
  bool independent = false;
  device::LaunchSpec spec;

 private:
  struct Output {
    device::Address at, pristine;
    std::uint64_t bytes;
  };

  void fill(const Benchmark& benchmark);

  device::Device& device_;
  const device::Stream stream_;
  const device::AddressRange arena_;
  std::vector<device::Module> modules_;
  std::vector<std::byte> parameters_;
  std::vector<Output> outputs_;
};

}  // namespace slate::bench
