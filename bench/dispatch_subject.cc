#include "bench/dispatch_subject.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "bench/form_module.h"
#include "daemon/dispatch/cubin.h"
#include "daemon/dispatch/device_dispatch.h"
#include "device/cuda/ptxas.h"
#include "tools/code_file.h"

namespace slate::bench {
namespace {

constexpr std::chrono::seconds kPatience{20};

/// The worker form with its dispatch kernel.
std::vector<std::byte> link(device::Device* device, const std::string& injected,
                            const std::string& worker) {
  const std::string texts[] = {injected, daemon::dispatch_text(worker)};
  constexpr std::chrono::minutes kLimit{1};
  const auto begin = std::chrono::steady_clock::now();
  auto code = require(
      device != nullptr
          ? device->link(texts, kLimit)
          : cuda::Ptxas({.path = {}, .major = 9, .driver_version = 13000}).link(texts, kLimit),
      worker);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto needs = daemon::needs_of(code, worker);
  fmt::print("{}: {} bytes, {} registers, linked in {:.1f} ms\n", worker, code.size(),
             needs ? needs->registers : 0, took.count());
  return code;
}

}  // namespace

void wait(device::Device& device, device::Stream stream) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto event = require(device.create_event(false), "event");
  require(device.record(event, stream), "record");
  while (!require(device.query(event), "kernel")) {
    device.wait_for_progress(std::chrono::milliseconds(10));
    if (std::chrono::steady_clock::now() > end) {
      fmt::print(stderr, "the device has not finished in time\n");
      std::_Exit(1);
    }
  }
  device.destroy_event(event);
}

std::vector<Benchmark> benchmarks() {
  const auto add = [](const std::string& name, std::uint32_t count) {
    return Benchmark{name,          "vector_add", "_Z10vector_addPKfS0_Pfj",
                     {count / 256}, {256},        {{count}, {count}, {count, 0, true}, {0, count}}};
  };
  const auto update = [](const std::string& name, std::uint32_t n) {
    return Benchmark{name,
                     "gaussian",
                     "_Z11update_rowsPfS_PKfjj",
                     {n / 4, n / 4},
                     {4, 4},
                     {{std::uint64_t{n} * n, 0, true}, {n, 0, true}, {n}, {0, n}, {0, 0}}};
  };
  const std::uint64_t n = 4096;
  return {add("vector_add 1M", 1u << 20),
          add("vector_add 256M", 1u << 28),
          update("update_rows 2048", 2048),
          update("update_rows 8192", 8192),
          {"sgemm 4096",
           "sgemm",
           "_Z5sgemmILj32EEvPKfS1_Pfj",
           {128, 128},
           {32, 32},
           {{n * n}, {n * n}, {n * n, 0, true}, {0, 4096}}}};
}

void link_all(const Settings& settings) {
  for (const Benchmark& benchmark : benchmarks()) {
    const auto images =
        require(tools::ptx_in_file(settings.programs + "/" + benchmark.program), "PTX");
    const auto parsed = require(ptx::parse(images.front().text), "PTX");
    const auto injected = require(injector::inject(*parsed, {}), "forms");
    const auto kernel =
        std::ranges::find(injected.kernels, benchmark.entry, &injector::KernelForms::name);
    link(nullptr, injected.ptx, kernel->worker);
  }
}

Subject::Subject(device::Device& device, device::Stream stream, device::AddressRange arena,
                 const Settings& settings, const Benchmark& benchmark)
    : device_(device), stream_(stream), arena_(arena) {
  const auto images =
      require(tools::ptx_in_file(settings.programs + "/" + benchmark.program), "PTX");
  const auto forms = require(load_with_forms(device_, images.front().text), benchmark.name);
  const injector::KernelForms* kernel = forms.find(benchmark.entry);
  modules_.push_back(forms.module);
  const auto code = link(&device_, forms.ptx, kernel->worker);
  modules_.push_back(require(device_.load_module(device::ImageKind::kCubin, code), "linked"));
  native = require(device_.find_function(modules_[0], benchmark.entry), "native");
  worker = require(device_.find_function(modules_[0], kernel->worker), "worker");
  dispatch = require(device_.find_function(modules_[1], daemon::dispatch_name(kernel->worker)),
                     "dispatch");
  const auto linked = require(device_.find_function(modules_[1], kernel->worker), "linked");
  info = require(device_.function_info(worker), "worker");
  linked_registers = require(device_.function_info(linked), "linked").registers;
  independent = kernel->analysis.independent_blocks;
  const auto threads = static_cast<std::uint32_t>(benchmark.block.count());
  room = std::min(require(device_.max_blocks_per_sm(worker, threads, 0), "room"),
                  require(device_.max_blocks_per_sm(linked, threads, 0), "room"));
  fill(benchmark);
  spec.grid = benchmark.grid;
  spec.block = benchmark.block;
  spec.parameters = parameters_;
  spec.arena = arena_;
}

void Subject::restore() {
  for (const Output& out : outputs_) {
    require(device_.copy(Place::on_device(out.at), Place::on_device(out.pristine), {out.bytes, 1},
                         stream_),
            "copy");
  }
}

void Subject::download(std::vector<std::byte>& to) {
  std::uint64_t bytes = 0;
  for (const Output& out : outputs_) bytes += out.bytes;
  to.resize(bytes);
  bytes = 0;
  for (const Output& out : outputs_) {
    require(device_.copy(Place::on_host(to.data() + bytes), Place::on_device(out.at),
                         {out.bytes, 1}, stream_),
            "copy");
    bytes += out.bytes;
  }
}

void Subject::fill(const Benchmark& benchmark) {
  constexpr std::uint64_t kPiece = 16 << 20;
  std::mt19937_64 random(1);
  std::vector<float> data(kPiece / 4);
  for (float& f : data) f = 0.5f + static_cast<float>(random() >> 40) * 0x1p-20f;
  device::Address at = arena_.base;
  const auto take = [&](std::uint64_t bytes) {
    const device::Address here = at;
    at += (bytes + 511) / 512 * 512;
    for (std::uint64_t done = 0; done < bytes; done += kPiece) {
      require(device_.copy(Place::on_device(here + done), Place::on_host(data.data()),
                           {std::min(kPiece, bytes - done), 1}, stream_),
              "copy");
    }
    return here;
  };
  for (std::size_t i = 0; i < benchmark.parameters.size(); ++i) {
    const SubjectParameter& parameter = benchmark.parameters[i];
    const auto& place = info.parameters[i];
    parameters_.resize(place.offset + place.size);
    if (parameter.floats == 0) {
      std::memcpy(parameters_.data() + place.offset, &parameter.word, sizeof(parameter.word));
      continue;
    }
    const std::uint64_t bytes = parameter.floats * 4;
    const device::Address buffer = take(bytes);
    std::memcpy(parameters_.data() + place.offset, &buffer, sizeof(buffer));
    if (parameter.written) outputs_.push_back({buffer, take(bytes), bytes});
  }
  if (at > arena_.base + arena_.bytes) fmt::print(stderr, "{} is too large\n", benchmark.name);
  wait(device_, stream_);
}

}  // namespace slate::bench
