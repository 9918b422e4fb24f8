// Modules: takes PTX, gives functions and placed variables. It parses, lays out .global and .const
// variables in a reservation of the module's own, and decodes each entry when it is first asked
// for. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "device/sim/memory.h"
#include "device/sim/program.h"
#include "device/sim/settings.h"

namespace slate::sim {

/// The parts of a function that a launch needs.
struct LaunchTarget {
  std::shared_ptr<const Program> program;
  device::FunctionInfo info;  // with the present limit of dynamic shared memory
  device::AddressRange globals;
  device::AddressRange constants;
  device::Dim3 required_block{0, 0, 0};  // .reqntid; zeros: any shape
};

/// Implements the methods of device::Device of the same names, whose contracts hold here.
class Modules {
 public:
  /// Most bytes of this process's memory that a module may take. Each kernel has a program of its
  /// own, with all that it can call.
  static constexpr std::uint64_t kMostHostBytes = std::uint64_t{2} << 30;

  /// Requires: `memory` outlives this.
  Modules(const Settings& settings, Memory& memory);
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  Result<device::Module> load_ptx(std::span<const std::byte> image);
  void unload(device::Module module);
  std::uint64_t host_bytes(device::Module module);
  Result<device::Function> find_function(device::Module module, const std::string& name);
  Result<device::AddressRange> find_global(device::Module module, const std::string& name);
  Result<void> set_attribute(device::Function function, FunctionAttribute attribute,
                             std::int32_t value);
  /// Errors: kInvalidHandle for an unknown function.
  Result<LaunchTarget> target(device::Function function);

 private:
  struct Loaded {
    std::shared_ptr<const ptx::Module> ptx;
    std::shared_ptr<SymbolTable> symbols = std::make_shared<SymbolTable>();  // complete once loaded
    device::AddressRange reservation;  // empty without variables
    device::AddressRange globals;
    device::AddressRange constants;
    std::map<std::string, device::Function, std::less<>> functions;  // functions asked for so far
    std::uint64_t host_bytes = 0;                                    // bytes, programs included
  };
  struct Entry {
    device::Module module;
    std::shared_ptr<const Program> program;
    std::uint32_t max_dynamic_shared_bytes;
    bool non_portable_clusters;
    device::Dim3 required_block;
  };

  /// Gives .global and .const variables addresses.
  Result<void> place_variables(Loaded& module);
  /// Writes the variables' initial values.
  Result<void> initialise(const Loaded& module);
  Result<Loaded*> find(device::Module module) SLATE_REQUIRES(mutex_);

  const Settings& settings_;
  Memory& memory_;
  Mutex mutex_;
  std::uint64_t next_handle_ SLATE_GUARDED_BY(mutex_) = 1;
  std::unordered_map<device::Module, Loaded> modules_ SLATE_GUARDED_BY(mutex_);
  std::unordered_map<device::Function, Entry> functions_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::sim
