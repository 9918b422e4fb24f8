// SessionFence: what the fenced kernels of one session may touch (injector/fence/fence_table.h),
// and the first access of theirs that they may not have made. Session thread, unless a function
// says otherwise.
//
// The table only grows while the session has work on the device. What goes away is taken out before
// it is unmapped, on whatever thread; its place is used again when no work is left.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/engine/constant_copies.h"
#include "daemon/engine/fence_memory.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"
#include "injector/fence/fence_table.h"

namespace slate::daemon {

class SessionFence : private FenceMemory::Listener {
 public:
  using Ranges = std::shared_ptr<const std::vector<device::AddressRange>>;

  /// What a fenced module is called in the record.
  struct ModuleNames {
    std::shared_ptr<const std::string> kernel;
    std::vector<std::string> functions;  // name by FenceRecord::function
  };

  /// `memory`: null if no kernel is ever fenced.
  explicit SessionFence(std::shared_ptr<FenceMemory> memory) : memory_(std::move(memory)) {}
  /// Requires: release() was called.
  ~SessionFence() override;
  SessionFence(const SessionFence&) = delete;
  SessionFence& operator=(const SessionFence&) = delete;

  /// Whether kernels that are launched now have to be fenced.
  bool is_on() const { return memory_ != nullptr && memory_->is_on(); }
  /// Counts a kernel that was fenced, or could not be. Requires: is_on().
  void count(bool fenced) { memory_->count(fenced); }
  /// Counts a launch of a fenced kernel. `bounded`: whether its bounded copy takes it.
  void count_launch(bool bounded) { memory_->count_launch(bounded); }
  bool lets_unfenced_run() const { return memory_->lets_unfenced_run(); }
  /// As FenceMemory::moves_unfenced().
  bool moves_unfenced() const { return memory_ != nullptr && memory_->moves_unfenced(); }

  /// Of what is behind the fence.
  ConstantCopies& constants() { return constants_; }

  /// A module behind the fence was loaded, whose constants lie at `constants`. Errors: those of
  /// FenceMemory::take(). Requires: is_on().
  Result<void> add_module(device::Module module, device::Address constants, ModuleNames names);
  /// Requires: no later launch is of the module.
  void remove_module(device::Module module);
  /// Variables of a module, textures and surfaces, from the next bring_up_to_date() on.
  void add_variable(device::Module module, device::AddressRange range);
  void add_handle(std::uint64_t handle);
  /// As take_out(). Any thread.
  void remove_variables(device::Module module);
  void remove_handle(std::uint64_t handle);
  /// Forbids kernels that run already, too. So none may use it rightly any more.
  void take_out(device::AddressRange range);

  /// Lets the launches from now on touch what the session has. `host`: its ranges outside of
  /// `memory`. `is_idle()`: whether no work of the session is left. It is asked only if something
  /// has changed, as the answer takes the submission of all launches. Errors: kLimit for more
  /// ranges than the table has; those of the device. Requires: a module was added.
  Result<void> bring_up_to_date(const MemoryManager& memory, const Ranges& host,
                                std::predicate auto&& is_idle) {
    const bool is_current = memory.mapped_version() == seen_version_ && host == seen_host_ &&
                            !changed_.load(std::memory_order_acquire);
    return is_current ? Result<void>() : write(memory, host, is_idle());
  }

  /// The number of a move of the main extent, once: bring_up_to_date() gave it another beginning,
  /// which kernels that run already may not have seen. The extent is empty until move_was_seen().
  std::optional<std::uint64_t> take_move() { return std::exchange(new_move_, std::nullopt); }
  /// All work is done that was submitted before the move. Any thread.
  void move_was_seen(std::uint64_t move);

  /// Memory of the session that is mapped as a whole, at present. What is taken out of it is
  /// unmapped behind all work that was submitted by then.
  device::AddressRange main_extent() const {
    const MutexLock lock(mutex_);
    return extent_;
  }
  /// What main_extent() probably is once it is up to date. Also without a module.
  device::AddressRange likely_extent(const MemoryManager& memory) const;
  device::AddressRange table() const { return slot_ ? slot_->table : device::AddressRange{}; }
  device::AddressRange record() const { return slot_ ? slot_->record : device::AddressRange{}; }
  /// The first access that a kernel was not allowed. Any thread.
  std::optional<Error> violation() const;
  /// Requires: no work of the session is left.
  void release();

 private:
  struct Module {
    device::Address constants = 0;
    std::uint32_t number = 0;
  };
  using Wanted = std::map<device::Address, std::uint64_t>;  // bytes by base

  void forget(device::AddressRange range) override { take_out(range); }
  bool cut_in_table(device::AddressRange range) SLATE_REQUIRES(mutex_);
  void cut_out(std::span<const device::AddressRange> ranges) SLATE_REQUIRES(mutex_);
  /// What is mapped, where ranges that follow one another are one.
  static std::vector<device::AddressRange> runs_of(const std::vector<device::AddressRange>& mapped);
  static device::AddressRange longest_of(const std::vector<device::AddressRange>& runs);
  Result<void> write(const MemoryManager& memory, const Ranges& host, bool idle);
  Wanted wanted(const std::vector<device::AddressRange>& mapped, const Ranges& host) const
      SLATE_REQUIRES(mutex_);
  Result<void> choose_extent(const std::vector<device::AddressRange>& mapped, bool idle)
      SLATE_REQUIRES(mutex_);
  Result<void> fill_table(const Wanted& wanted, bool idle) SLATE_REQUIRES(mutex_);
  Result<void> fill_handles(bool idle) SLATE_REQUIRES(mutex_);
  Result<void> write_table() SLATE_REQUIRES(mutex_);
  Result<void> write_constants(const std::vector<Module>& modules) SLATE_REQUIRES(mutex_);
  injector::FenceConstants constants_of(const Module& module) const SLATE_REQUIRES(mutex_);
  std::string where(const injector::FenceRecord& record) const SLATE_REQUIRES(mutex_);

  const std::shared_ptr<FenceMemory> memory_;
  ConstantCopies constants_;
  std::optional<FenceMemory::Slot> slot_;                 // from the first module on
  std::atomic<injector::FenceRecord*> watched_{nullptr};  // the slot's record, for all threads
  mutable Mutex mutex_;
  device::AddressRange extent_ SLATE_GUARDED_BY(mutex_);                  // the main extent
  std::uint64_t moves_ SLATE_GUARDED_BY(mutex_) = 0;                      // of it, so far
  std::uint64_t seen_moves_ SLATE_GUARDED_BY(mutex_) = 0;                 // of these, seen by all
  std::unique_ptr<injector::FenceTable> table_ SLATE_GUARDED_BY(mutex_);  // as the device has it
  std::map<device::Module, Module> modules_ SLATE_GUARDED_BY(mutex_);
  std::vector<ModuleNames> names_ SLATE_GUARDED_BY(mutex_);  // by number less 1
  std::multimap<device::Module, device::AddressRange> variables_ SLATE_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> handles_ SLATE_GUARDED_BY(mutex_);  // the newest last
  std::uint64_t forgotten_ SLATE_GUARDED_BY(mutex_) = 0;         // calls of forget() so far
  // What the table has.
  std::uint64_t seen_version_ = 0;
  Ranges seen_host_;
  std::optional<std::uint64_t> new_move_;  // for take_move()
  std::atomic<bool> changed_{true};        // whether anything else has changed since
};

}  // namespace slate::daemon
