// LoadedModules: what one session has loaded on the device, with what that takes of device memory
// and of the engine's. Also modules that the session has forgotten and that are still in use.
// Session thread, except count() and unload_now().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "daemon/engine/memory_manager.h"
#include "device/device.h"

namespace slate::daemon {

class LoadedModules {
 public:
  /// Of the engine's memory, that a session's modules take (Device::host_bytes()), with what their
  /// forms are made from.
  static constexpr std::uint64_t kMostHostBytes = std::uint64_t{3} << 30;
  /// Charges device memory to the session, as MemoryManager::charge(), or waits for a free.
  using ChargeMemory = std::function<Result<void>(std::uint64_t bytes)>;
  enum class Kind : std::uint8_t { kOwn, kForms };

  /// The memory of a module's variables, charged before it is taken: others may need it. Given back
  /// unless the module comes.
  class Charge {
   public:
    explicit Charge(LoadedModules& modules) : modules_(modules) {}
    ~Charge();
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    /// Once; a second time does nothing.
    Result<void> take(std::uint64_t variables);

   private:
    friend class LoadedModules;
    LoadedModules& modules_;
    std::uint64_t bytes_ = 0;
  };

  explicit LoadedModules(device::Device& device) : device_(device) {}
  /// Requires: release() was called.
  ~LoadedModules();

  /// Once, before the first module: what variables take is charged from then on, and given back to
  /// `memory`, which outlives this.
  void charge_to(MemoryManager& memory, ChargeMemory charge) {
    memory_ = &memory;
    charge_ = std::move(charge);
  }

  /// `source_bytes`: of the engine's memory, beside the code. kLimit beyond kMostHostBytes: then
  /// the module is unloaded again.
  Result<void> add(device::Module module, Charge& charge, Kind kind, std::uint64_t source_bytes);
  /// A module's functions, too, take memory when they are found. kLimit as add().
  Result<void> note_host_bytes(device::Module module);
  /// Its session has forgotten it: its charge may come back before long.
  void retire(device::Module module);
  /// Any thread. Requires: no unfinished work uses it.
  void unload_now(device::Module module);
  /// Of kind kOwn. Any thread.
  std::size_t count() const;
  /// Unloads everything. Requires: no unfinished work.
  void release();

 private:
  struct Loaded {
    Kind kind = Kind::kOwn;
    std::uint64_t source_bytes = 0;
    std::uint64_t host_bytes = 0;  // with those
    std::uint64_t charged = 0;
    bool retired = false;  // its charge is
  };
  void give_back(const Loaded& loaded);

  device::Device& device_;
  MemoryManager* memory_ = nullptr;  // null: nothing is charged
  ChargeMemory charge_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<device::Module, Loaded> loaded_;
  std::uint64_t host_bytes_ = 0;  // of all of them
};

}  // namespace slate::daemon
