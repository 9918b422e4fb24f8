// VariableHomes: gives the variables of a session's modules a home in the session's memory
// (daemon/dispatch/variable_home.h). Thread: the session's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "daemon/dispatch/variable_home.h"
#include "daemon/engine/constant_copies.h"
#include "daemon/engine/own_copies.h"
#include "device/device.h"

namespace slate::daemon {

/// Where a module's variables are.
struct ModuleHome {
  device::AddressRange memory;
  VariableMap variables;
  std::shared_ptr<OwnConstantSet> constants;  // its bank; null: it has no constants
};

/// A program's own module, whose variables the modules that are made of it use.
struct ProgramModule {
  device::Module handle{};
  std::shared_ptr<const ModuleHome> home;  // null: the variables are the driver's

  /// Address of a variable. Errors: kSymbolNotFound.
  Result<device::AddressRange> find(device::Device& device, const std::string& name) const;
};

class VariableHomes {
 public:
  /// The session's memory for homes.
  struct Memory {
    std::function<Result<device::Address>(std::uint64_t bytes)> take;  // aligned to 512
    std::function<void(device::Address home)> give_back;               // requires: no work uses it
  };
  using Move = std::function<Result<HomedCode>(device::AddressRange home)>;
  using Load = std::function<Result<device::Module>(std::span<const std::byte> code)>;

  explicit VariableHomes(device::Device& device) : device_(device), copies_(device) {}

  /// Without memory all variables stay the driver's.
  void use(Memory memory) { memory_ = std::move(memory); }
  bool has_memory() const { return memory_.take != nullptr; }

  /// Gives back the home of a module that was unloaded, if it has one.
  void forget(const ProgramModule& module) {
    if (module.home != nullptr) memory_.give_back(module.home->memory.base);
  }

  /// Loads by `load` the code that `move` gives for a home of so many bytes. `past`: the home that
  /// the module had in another engine, with its contents. Nullopt: the variables have to stay the
  /// driver's, and nothing is loaded. Errors: kOutOfMemory; kUnavailable where there is no way but
  /// the past home; those of the device.
  Result<std::optional<ProgramModule>> load(std::uint64_t bytes,
                                            std::optional<device::Address> past, const Move& move,
                                            const Load& load);

 private:
  Result<ProgramModule> load_code(device::AddressRange home, HomedCode code, bool is_past,
                                  const Load& load);
  Result<void> fill(device::AddressRange home, std::span<const std::byte> contents);
  Result<std::shared_ptr<OwnConstantSet>> find_bank(device::Module module, const HomedCode& code,
                                                    bool is_past) const;

  device::Device& device_;
  Memory memory_;
  OwnCopies copies_;
};

}  // namespace slate::daemon
