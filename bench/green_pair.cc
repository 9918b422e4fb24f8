// green_pair: several of the programs of kernels/ in one process, each in a green context over SMs
// of its own. It is the baseline of a static partition that somebody chose by hand; nothing of
// slate is in it.
//
//   green_pair --shares 25,75 -- green/sgemm.so --reps 10 -- green/transpose.so --reps 40
//
// A program is a shared object of the same object files as bin/shared/NAME. Each runs its main() in
// a thread on which its green context is current: the runtime takes the current context (CUDA
// Runtime API, "Interactions with the CUDA Driver API"), and with a green one there the null stream
// and new streams belong to it (cuda.h, cuStreamGetCtx_v2). Before that, each thread launches a
// kernel through the runtime that notes its SMs, and the partition that it does not stay in is an
// error. First line of the output: {"sms": [...], ...}, with what the set-up took; then what the
// programs print. Exit status: the largest of the programs', 64 for wrong options, 69 where the
// device or driver has no green contexts.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kExitUsage = 64;
constexpr int kExitUnavailable = 69;
constexpr unsigned int kMaxSms = 4096;

[[noreturn]] void stop(int status, const std::string& message) {
  fmt::print(stderr, "green_pair: {}\n", message);
  std::exit(status);
}

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    stop(kExitUnavailable, fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

void require(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS)
    stop(kExitUnavailable, fmt::format("{}: error {}", what, static_cast<int>(result)));
}

/// The driver's function of that name, as the headers here declare it. The runtime has the driver
/// open.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
  require(
      cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &answer),
      name);
  if (answer != cudaDriverEntryPointSuccess || found == nullptr) {
    stop(kExitUnavailable, fmt::format("this driver has no {}", name));
  }
  return reinterpret_cast<Function>(found);
}

#define DRIVER(name) driver_function<decltype(&::name)>(#name)

// Its blocks stay for some ten microseconds, so that every SM gets some of them.
constexpr const char* kProbe = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry note_sm(.param .u64 seen)
{
  .reg .pred %more;
  .reg .b32 %sm, %one;
  .reg .b64 %at, %offset, %start, %now;
  ld.param.u64 %at, [seen];
  cvta.to.global.u64 %at, %at;
  mov.u32 %sm, %smid;
  mul.wide.u32 %offset, %sm, 4;
  add.u64 %at, %at, %offset;
  mov.u32 %one, 1;
  st.global.u32 [%at], %one;
  mov.u64 %start, %clock64;
WAIT:
  mov.u64 %now, %clock64;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %more, %now, 20000;
  @%more bra WAIT;
  ret;
}
)";

/// The SMs that a kernel runs on which this thread launches, as the programs launch theirs.
std::set<unsigned int> sms_of_this_thread(unsigned int sm_count) {
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadData(&library, kProbe, nullptr, nullptr, 0, nullptr, nullptr, 0),
          "the probe");
  cudaKernel_t kernel = nullptr;
  require(cudaLibraryGetKernel(&kernel, library, "note_sm"), "the probe");
  void* memory = nullptr;
  require(cudaMalloc(&memory, kMaxSms * sizeof(unsigned int)), "cudaMalloc");
  require(cudaMemset(memory, 0, kMaxSms * sizeof(unsigned int)), "cudaMemset");
  void* parameters[] = {&memory};
  require(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(64 * sm_count), dim3(32),
                           parameters, 0, nullptr),
          "launch of the probe");
  std::vector<unsigned int> seen(kMaxSms);
  require(cudaMemcpy(seen.data(), memory, kMaxSms * sizeof(unsigned int), cudaMemcpyDeviceToHost),
          "the probe's result");
  require(cudaFree(memory), "cudaFree");
  require(cudaLibraryUnload(library), "unloading the probe");
  std::set<unsigned int> sms;
  for (unsigned int sm = 0; sm < kMaxSms; ++sm) {
    if (seen[sm] != 0) sms.insert(sm);
  }
  return sms;
}

struct Partition {
  std::vector<CUdevResource> parts;
  unsigned int sms = 0;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
};

/// Cuts the device into the driver's smallest groups and deals them out by `shares`: everybody at
/// least one, the last one all that is left, with the remainder that is no whole group.
std::vector<Partition> partition_device(CUdevice device, const std::vector<double>& shares) {
  CUdevResource whole{};
  require(DRIVER(cuDeviceGetDevResource)(device, &whole, CU_DEV_RESOURCE_TYPE_SM),
          "cuDeviceGetDevResource");
  const auto split = DRIVER(cuDevSmResourceSplitByCount);
  const unsigned int unit = std::max(whole.sm.minSmPartitionSize, 1U);
  unsigned int count = 0;
  require(split(nullptr, &count, &whole, nullptr, 0, unit), "cuDevSmResourceSplitByCount");
  std::vector<CUdevResource> groups(count);
  CUdevResource rest{};
  require(split(groups.data(), &count, &whole, &rest, 0, unit), "cuDevSmResourceSplitByCount");
  groups.resize(count);
  if (rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0) groups.push_back(rest);
  if (groups.size() < shares.size()) {
    stop(kExitUnavailable,
         fmt::format("{} programs, but only {} groups of SMs", shares.size(), groups.size()));
  }
  double total = 0;
  for (const double share : shares) total += share;
  std::vector<Partition> partitions(shares.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::size_t others = shares.size() - 1 - i;
    const auto last = i + 1 == shares.size();
    const double wanted = shares[i] / total * whole.sm.smCount;
    Partition& partition = partitions[i];
    while (next + others < groups.size() &&
           (last || partition.parts.empty() ||
            partition.sms + groups[next].sm.smCount / 2.0 <= wanted)) {
      partition.sms += groups[next].sm.smCount;
      partition.parts.push_back(groups[next++]);
    }
  }
  return partitions;
}

void make_contexts(CUdevice device, std::vector<Partition>& partitions) {
  for (Partition& partition : partitions) {
    CUdevResourceDesc description = nullptr;
    require(DRIVER(cuDevResourceGenerateDesc)(&description, partition.parts.data(),
                                              static_cast<unsigned int>(partition.parts.size())),
            "cuDevResourceGenerateDesc");
    require(DRIVER(cuGreenCtxCreate)(&partition.green, description, device,
                                     CU_GREEN_CTX_DEFAULT_STREAM),
            "cuGreenCtxCreate");
    require(DRIVER(cuCtxFromGreenCtx)(&partition.context, partition.green), "cuCtxFromGreenCtx");
  }
}

/// Ends the process unless a launch on each partition stays on as many SMs as it has, and none on
/// another's.
void check_partitions(const std::vector<Partition>& partitions, unsigned int sm_count) {
  std::set<unsigned int> taken;
  for (const Partition& partition : partitions) {
    std::set<unsigned int> sms;
    std::jthread([&] {
      require(DRIVER(cuCtxSetCurrent)(partition.context), "cuCtxSetCurrent");
      sms = sms_of_this_thread(sm_count);
      require(DRIVER(cuCtxSetCurrent)(nullptr), "cuCtxSetCurrent");
    }).join();
    const bool overlaps = std::ranges::any_of(sms, [&](auto sm) { return taken.contains(sm); });
    if (sms.empty() || sms.size() > partition.sms || overlaps) {
      stop(kExitUnavailable, fmt::format("a partition of {} SMs ran on {}{}", partition.sms,
                                         sms.size(), overlaps ? ", some of another one" : ""));
    }
    taken.insert(sms.begin(), sms.end());
  }
}

double now_ms() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(since).count();
}

using Main = int (*)(int, char**);

struct Program {
  std::vector<std::string> arguments;  // the first one is the shared object
  Main main = nullptr;
  int status = 0;
};

void load(Program& program) {
  void* const library = dlopen(program.arguments.front().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) stop(kExitUsage, dlerror());
  program.main = reinterpret_cast<Main>(dlsym(library, "main"));
  if (program.main == nullptr) stop(kExitUsage, dlerror());
}

void run(Program& program, const Partition& partition) {
  require(DRIVER(cuCtxSetCurrent)(partition.context), "cuCtxSetCurrent");
  std::vector<char*> arguments;
  for (std::string& argument : program.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  program.status = program.main(static_cast<int>(program.arguments.size()), arguments.data());
  require(DRIVER(cuCtxSetCurrent)(nullptr), "cuCtxSetCurrent");
}

/// The command line, cut at each "--": our own options, then the programs with theirs.
std::vector<std::vector<std::string>> cut(int argc, char** argv) {
  std::vector<std::vector<std::string>> pieces(1);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--") {
      pieces.emplace_back();
    } else {
      pieces.back().emplace_back(argv[i]);
    }
  }
  return pieces;
}

}  // namespace

int main(int argc, char** argv) {
  auto pieces = cut(argc, argv);
  std::vector<double> shares;
  int device = 0;
  CLI::App app(
      "Programs in green contexts: green_pair --shares A,B -- PROGRAM.so ... -- PROGRAM.so ...");
  app.add_option("--shares", shares, "parts of the SMs, one a program")
      ->delimiter(',')
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--device", device, "number of the GPU")->capture_default_str();
  std::ranges::reverse(pieces.front());  // as CLI11 wants a vector
  try {
    app.parse(pieces.front());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  std::vector<Program> programs;
  for (std::size_t i = 1; i < pieces.size(); ++i) programs.push_back({std::move(pieces[i])});
  const bool empty = std::ranges::any_of(programs, [](auto& p) { return p.arguments.empty(); });
  if (programs.empty() || empty || programs.size() != shares.size()) {
    stop(kExitUsage, "as many programs as shares, each after a --");
  }
  for (Program& program : programs) load(program);

  const double begun = now_ms();
  require(cudaInitDevice(device, 0, 0), "the device");  // the primary context, for all of them
  int sm_count = 0;
  require(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device), "the device");
  const double open = now_ms();
  auto partitions = partition_device(device, shares);
  make_contexts(device, partitions);
  const double made = now_ms();
  check_partitions(partitions, static_cast<unsigned int>(sm_count));
  std::vector<unsigned int> sms;
  for (const Partition& partition : partitions) sms.push_back(partition.sms);
  fmt::print(
      "{{\"sms\": {}, \"device_ms\": {:.1f}, \"contexts_ms\": {:.1f}, \"check_ms\": {:.1f}}}\n",
      sms, open - begun, made - open, now_ms() - made);
  std::fflush(stdout);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      threads.emplace_back([&, i] { run(programs[i], partitions[i]); });
    }
  }
  for (const Partition& partition : partitions) {
    require(DRIVER(cuGreenCtxDestroy)(partition.green), "cuGreenCtxDestroy");
  }
  return std::ranges::max(programs, {}, &Program::status).status;
}
