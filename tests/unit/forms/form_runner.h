// FormRunner: runs a kernel in one form or another on a device and returns what it left in memory,
// so that a test can compare forms bit for bit. Worker launches can be disturbed while they run:
// other placements, supplementary workers, full retreats.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/dispatch/worker_launch.h"
#include "device/device.h"
#include "injector/analysis/restart.h"
#include "injector/fence/fence.h"
#include "injector/fence/fence_table.h"
#include "injector/forms/inject.h"
#include "injector/forms/profile.h"

namespace slate::test {

/// One parameter of a kernel: a value, or a buffer in device memory with these contents, as its
/// address or as a texture, whose address is filled in.
struct Argument {
  bool is_buffer = false;
  std::optional<TextureSpec> texture{};
  std::vector<std::byte> bytes;
  std::optional<std::size_t> same_as{};  // the buffer of this argument, an earlier one

  template <typename T>
  static Argument value(T value) {
    Argument argument;
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    argument.bytes.assign(begin, begin + sizeof(T));
    return argument;
  }
  template <typename T>
  static Argument buffer(const std::vector<T>& contents) {
    Argument argument;
    argument.is_buffer = true;
    const auto* begin = reinterpret_cast<const std::byte*>(contents.data());
    argument.bytes.assign(begin, begin + contents.size() * sizeof(T));
    return argument;
  }
};

/// The same buffer as a texture of words.
Argument as_texture(Argument buffer);
/// The same buffer as an image of four channels of 8 bits, read as numbers from 0 to 1 and clamped.
/// `width` is a multiple of 8 pixels.
Argument as_image(Argument buffer, std::uint64_t width);

struct KernelCase {
  std::string name;   // of the case
  std::string entry;  // in the PTX
  device::Dim3 grid, block;
  std::uint32_t shared_bytes = 0;
  std::vector<Argument> arguments;
  std::map<std::string, std::vector<std::byte>> constants{};  // by a part of the variable's name
};

/// What a run left: the bytes of every buffer in order, and of every global variable asked for.
using Outcome = std::vector<std::vector<std::byte>>;

struct Disturbance {
  bool placements = false;  // random tables from the start, and new ones in the middle
  bool retreats = false;    // empty tables in the middle, and workers again later
  bool supplements = false;
};

class FormRunner {
 public:
  /// Injects `ptx`, with malloc and free as a program's would have them, and loads the result.
  /// `most_registers`: of all worker forms, which gives them the lean loop where they can take it;
  /// 0: no limit. `fenced`: the module is loaded with the fence, and may touch main_extent() and
  /// its variables. Fails the test on any error.
  /// Bounded copies are made for launches like `first`. Null: for any that they bound.
  FormRunner(device::Device& device, const std::string& ptx, std::uint32_t most_registers,
             bool fenced = false, const KernelCase* first = nullptr);
  ~FormRunner();

  const injector::KernelForms& forms(const std::string& entry) const;
  const std::string& injected() const { return injected_.ptx; }
  /// Requires: it is fenced.
  const injector::FencedModule& fenced() const { return *fenced_; }
  /// What the device lets kernels touch, but not the fence: behind the main extent.
  device::AddressRange beyond_extent() const;
  device::AddressRange main_extent() const {
    return tight_.value_or(device::AddressRange{arena_.base, arena_.bytes - kTailBytes});
  }
  device::Address fence_table() const {
    return arena_.base + arena_.bytes - sizeof(injector::FenceTable);
  }
  device::Address fence_record() const { return fence_table() - sizeof(injector::FenceRecord); }
  /// The record of the first violation; then it is free again.
  injector::FenceRecord take_record();
  /// Whether a fenced kernel has ended a thread since the last run began.
  bool has_ended();
  /// Runs from now on find that one had been ended before.
  void set_ended() { ended_ = 1; }
  std::vector<std::byte> read(device::AddressRange range);
  void write(device::Address to, const std::vector<std::byte>& bytes);

  Outcome run_native(const KernelCase& kernel);
  /// In the kernel's bounded copy behind the fence; nothing where the launch does not keep to its
  /// bounds, or there is no copy.
  std::optional<Outcome> run_bounded(const KernelCase& kernel);
  /// The same where the kernel may touch only the least range that the launch keeps to by its
  /// bounds: what it touches beyond without a check is a fault. Not to be compared, as what is
  /// checked may be a violation then. The record is free afterwards. Whether it was run.
  bool run_bounded_tightly(const KernelCase& kernel);
  /// The same where all memory is taken out of the main extent and the table between the look at
  /// the bounds and the launch. The record is as the launch leaves it.
  bool run_bounded_without_memory(const KernelCase& kernel);
  /// In slices of random sizes, in rising order.
  Outcome run_slices(const KernelCase& kernel, std::mt19937_64& random);
  /// Of two worker forms, one at random. `queue`, if not null, has run other launches before.
  Outcome run_worker(const KernelCase& kernel, std::mt19937_64& random, Disturbance disturbance,
                     daemon::WorkerQueue* queue = nullptr);
  daemon::WorkerQueue make_queue() { return {device_, *memory_}; }
  /// In the profile form; `work`, if not null, gets what the counters say of blocks that are no
  /// further than `sample`.
  Outcome run_profile(const KernelCase& kernel, std::optional<injector::Work>* work = nullptr,
                      std::uint32_t sample = 0xffffffff);
  /// Whether the launch may be restarted; each buffer is an allocation.
  injector::Restart may_restart(const KernelCase& kernel);
  /// What the launch can do to each of its buffers, in order; nothing if it can reach any memory.
  std::optional<std::vector<injector::LaunchReach::Place>> reach(const KernelCase& kernel);
  /// Natively, after some of its blocks have run, each range of them in the slice form.
  Outcome run_after_some_blocks(const KernelCase& kernel, std::mt19937_64& random);
  /// Natively. What the launch changes in its buffers holds anything before: random bytes at some
  /// of the places where `native` differs from the arguments.
  Outcome run_after_some_writes(const KernelCase& kernel, const Outcome& native,
                                std::mt19937_64& random);
  /// Retreats that were seen to leave work for later, in all runs so far.
  std::uint64_t retreats() const { return retreats_; }

 private:
  struct Prepared {
    device::FunctionInfo info;
    daemon::FormLaunch launch;
    std::vector<std::byte> parameters;
    std::vector<device::AddressRange> buffers;
    std::map<std::uint64_t, device::AddressRange> textures{};  // by handle
  };

  static constexpr std::uint64_t kTailBytes = 2 << 20;

  static injector::MemoryMap memory_of(const Prepared& prepared);
  /// Cuts the launch into slices of random lengths, and launches those that `chosen` says.
  void launch_slices(const Prepared& prepared, std::mt19937_64& random,
                     const std::function<bool()>& chosen);
  void make_heap();
  void fence(const injector::LaunchValues* launch);
  void fence_for(const KernelCase& first);
  void make_fence();
  void write_table();
  /// Requires: `prepared` outlives it.
  injector::LaunchValues values_of(const Prepared& prepared) const;
  /// The least range that the launch keeps to by its bounds. Requires: it keeps to `launch`'s.
  static device::AddressRange tight(const injector::AccessBounds& bounds,
                                    injector::LaunchValues launch);
  std::uint64_t make_texture(TextureSpec spec, device::Address address);
  void destroy_textures();
  Prepared prepare(const KernelCase& kernel, const std::string& entry);
  std::optional<Prepared> prepare_bounded(const KernelCase& kernel);
  void pass_limits(Prepared& prepared, const injector::AccessBounds& bounds,
                   device::AddressRange extent) const;
  Outcome collect(const Prepared& prepared);
  void reset_globals();
  void set_constants(const KernelCase& kernel);
  daemon::WorkerTable random_placement(std::mt19937_64& random) const;
  void disturb(daemon::WorkerQueue& queue, std::mt19937_64& random, Disturbance disturbance);
  bool stream_is_idle(device::Stream stream);
  void wait_for(device::Stream stream);
  std::uint64_t read_word(device::Address address);
  void check_clean(const daemon::WorkerQueue& queue);

  device::Device& device_;
  injector::InjectedModule injected_;
  std::optional<injector::FencedModule> fenced_;          // without the bounded copies
  std::map<std::string, injector::AccessBounds> bounds_;  // by bounded copy
  std::unique_ptr<const ptx::Module> parsed_;
  device::Module module_{};
  device::AddressRange arena_{};
  std::optional<device::AddressRange> tight_;  // main extent of run_bounded_tightly()
  device::Stream stream_{};
  device::Stream control_{};
  device::Stream second_{};
  std::unique_ptr<daemon::ControlMemory> memory_;
  std::vector<device::Texture> textures_;                  // of the case that was prepared last
  std::map<std::string, std::vector<std::byte>> globals_;  // as they were after loading
  std::uint64_t retreats_ = 0;
  std::uint32_t ended_ = 0;  // FenceTable::ended before each run
};

/// Empty if they are equal; else where they differ first, and how often.
std::string difference(const Outcome& got, const Outcome& wanted);

/// The PTX of a file.
std::string read_text(const std::string& path);

}  // namespace slate::test
