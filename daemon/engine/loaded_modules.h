// LoadedModules: the modules of one session on the device, and their memory there and in the
// engine. Forgotten modules that are still in use are among them. Modules that sessions share are
// unloaded with the last of these. Session thread, except count() and unload_now().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "daemon/engine/image_store.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"

namespace slate::daemon {

class LoadedModules {
 public:
  /// The most engine memory for a session's modules (Device::host_bytes()), with the sources of
  /// their forms.
  static constexpr std::uint64_t kMostHostBytes = std::uint64_t{3} << 30;
  /// Charges device memory to the session, as MemoryManager::charge(); waits for a free if need be.
  using ChargeMemory = std::function<Result<void>(std::uint64_t bytes)>;
  enum class Kind : std::uint8_t { kOwn, kForms };

  /// The memory of a module's variables. It is charged before it is taken, as others may need it,
  /// and given back unless the module is added.
  class Charge {
   public:
    explicit Charge(LoadedModules& modules) : modules_(modules) {}
    ~Charge();
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;

    /// Charges the variables. Of several calls the largest counts: one load may take several
    /// attempts.
    Result<void> take(std::uint64_t variables);
    /// Bytes of the variables that were charged.
    std::uint64_t variables() const { return variables_; }

   private:
    friend class LoadedModules;
    LoadedModules& modules_;
    std::uint64_t variables_ = 0;
    std::uint64_t bytes_ = 0;
  };

  explicit LoadedModules(device::Device& device) : device_(device) {}
  /// Requires: release() was called.
  ~LoadedModules();

  /// Charges variables from now on, and gives their memory back to `memory`. Takes engine memory
  /// from `account`; null: from nobody. Both outlive this. Called once, before the first module.
  void charge_to(MemoryManager& memory, ChargeMemory charge,
                 std::shared_ptr<MemoryLedger::Account> account = nullptr) {
    memory_ = &memory;
    charge_ = std::move(charge);
    account_ = std::move(account);
  }

  /// `source_bytes`: engine memory beside the code. Beyond kMostHostBytes it unloads the module and
  /// returns kLimit. `shared`: what the module is of, if sessions share it. Then the session may
  /// have it several times.
  Result<void> add(device::Module module, Charge& charge, Kind kind, std::uint64_t source_bytes,
                   std::shared_ptr<SharedModule> shared = nullptr);
  /// Counts the memory of the module's functions, which grows when they are found. kLimit as add().
  Result<void> note_host_bytes(device::Module module);
  /// The session has forgotten the module: its charge may come back soon.
  void retire(device::Module module);
  /// Unloads it, or takes one of several times back. Any thread. Requires: no unfinished work of
  /// what is taken back uses the module.
  void unload_now(device::Module module);
  /// Engine memory of all modules. Any thread.
  std::uint64_t host_bytes() const;
  /// Number of modules of kind kOwn. Any thread.
  std::size_t count() const;
  /// Unloads everything. Requires: no unfinished work.
  void release();

 private:
  struct Loaded {
    Kind kind = Kind::kOwn;
    std::uint64_t source_bytes = 0;
    std::uint64_t host_bytes = 0;  // engine memory, with the source
    std::uint64_t charged = 0;
    bool retired = false;                            // whether its charge is retired
    std::size_t uses = 1;                            // how many of the session's modules it is
    std::shared_ptr<SharedModule> shared = nullptr;  // null: the session's own
  };
  void unload(device::Module module, Loaded loaded);
  Result<void> take_host_bytes(std::uint64_t before, std::uint64_t now) SLATE_REQUIRES(mutex_);

  device::Device& device_;
  MemoryManager* memory_ = nullptr;  // null: nothing is charged
  ChargeMemory charge_;
  std::shared_ptr<MemoryLedger::Account> account_;  // null: none
  mutable Mutex mutex_;
  std::map<device::Module, Loaded> loaded_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t host_bytes_ SLATE_GUARDED_BY(mutex_) = 0;  // engine memory of all modules
};

}  // namespace slate::daemon
