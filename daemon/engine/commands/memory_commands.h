// MemoryCommands: a session's device memory, and the commands on it. A freed allocation is gone for
// the client at once. It goes back to the arena when all work submitted before the free has
// finished. Session thread, but for charged().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/local_memory.h"
#include "daemon/engine/memory_manager.h"
#include "daemon/engine/session_hooks.h"

namespace slate::daemon {

class MemoryCommands {
 public:
  /// `local`: shared by all sessions of the device.
  MemoryCommands(const PartContext& context, std::shared_ptr<LocalMemory> local)
      : context_(context), pool_(std::move(local)), local_(*pool_) {}

  /// Makes the arena, of at most `limit` bytes. To be called first. `account`: see
  /// MemoryManager::make(). `wait`: how long requests wait for memory that others have.
  Result<void> start(std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
                     std::chrono::milliseconds wait = {});
  /// The same, where the session comes from another engine. What it has freed is given back behind
  /// the work that is made again: see free_retired().
  Result<void> start_again(std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
                           std::chrono::milliseconds wait, PastMemory past);
  Result<void> free_retired();
  /// Requires: no unfinished work uses the memory.
  void release();

  Result<void> on(const Call<ipc::CommandType::kMemoryAllocate>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryFree>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryInfo>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryExport>& call);

  /// Unmaps segments that nobody uses any more, behind the work that may have begun before.
  Result<void> unmap_left();
  bool has_left() const { return manager_ && manager_->has_left(); }

  /// Makes something that takes memory, by `make()`, as soon as there is room for it.
  template <typename Make>
  std::invoke_result_t<Make> with_room(const Make& make);

  /// As with_room(), for what is no segment. Where the device is full all the same, memory of
  /// sessions leaves it. Requires: the present command needs no memory of the session.
  template <typename Make>
  std::invoke_result_t<Make> with_device_room(const Make& make);

  /// Makes sure that launches may use so many bytes of local memory a thread. kOutOfMemory.
  Result<void> need_local(std::uint64_t bytes) {
    if (local_.has(bytes)) return {};
    return with_room([&] { return local_.need(bytes, *manager_); });
  }

  /// Requires: start() has succeeded.
  MemoryManager& manager() { return *manager_; }
  /// Null where all memory is on the device, and before start().
  SegmentBacking* backing() { return manager_ ? manager_->backing() : nullptr; }
  bool owns(device::Address address, std::uint64_t bytes) const {
    return manager_->owns(address, bytes);
  }
  /// Bytes that count against the limit; 0 before start(). Any thread.
  std::uint64_t charged() const;
  /// Any thread.
  MemoryPlaces places() const;

 private:
  void set_up(std::unique_ptr<MemoryManager> manager);
  std::unique_ptr<SegmentBacking> make_backing();
  bool settle() const { return context_.book && context_.book->settle(); }
  bool may_wait_for_others(std::chrono::steady_clock::time_point deadline) const;

  const PartContext& context_;
  const std::shared_ptr<LocalMemory> pool_;
  LocalMemory::Share local_;
  std::chrono::milliseconds wait_{};
  std::shared_ptr<MemoryManager> manager_;
  std::vector<device::Address> retired_;       // blocks that another engine had retired
  std::atomic<MemoryManager*> seen_{nullptr};  // `manager_`, for other threads
};

/// Local memory that nobody needs may make room, and memory that the supervisor still holds. So may
/// frees that wait for running work; the last one may have ended just now. So may the slack, while
/// no unfinished work can use it, and the memory of a spare engine.
template <typename Make>
std::invoke_result_t<Make> MemoryCommands::with_room(const Make& make) {
  auto made = make();
  if (!made && made.error().code == ErrorCode::kOutOfMemory && pool_->trim()) made = make();
  if (!made && made.error().code == ErrorCode::kOutOfMemory && settle()) made = make();
  bool more_may_come = true;
  while (more_may_come && !made && made.error().code == ErrorCode::kOutOfMemory &&
         !context_.faults.failed() && !context_.is_over()) {
    if (!context_.checked(context_.retirement.go_on()) || !unmap_left()) break;
    more_may_come = manager_->wait_for_free(std::chrono::milliseconds(100));
    (void)settle();
    made = make();
  }
  if (!made && made.error().code == ErrorCode::kOutOfMemory &&
      context_.streams.unfinished(nullptr).empty() && manager_->drop_slack()) {
    made = make();
  }
  if (!made && made.error().code == ErrorCode::kOutOfMemory && manager_->chargeable() > 0 &&
      context_.book && context_.book->make_room()) {
    made = make();
  }
  const auto deadline = std::chrono::steady_clock::now() + wait_;
  while (!made && made.error().code == ErrorCode::kOutOfMemory && may_wait_for_others(deadline)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    made = make();
  }
  return made;
}

/// How much the driver takes is not known, so more leaves each time. None does for what the session
/// may not have.
template <typename Make>
std::invoke_result_t<Make> MemoryCommands::with_device_room(const Make& make) {
  constexpr std::uint64_t kLeast = 4 << 20;
  auto made = with_room(make);
  if (made || backing() == nullptr || !context_.with_free) return made;
  std::uint64_t refusals = 0;
  const auto try_again = [&] {
    refusals = manager_->refusals();
    made = make();
  };
  const auto is_full = [&] {
    return !made && made.error().code == ErrorCode::kOutOfMemory &&
           manager_->refusals() == refusals;
  };
  if (made.error().code == ErrorCode::kOutOfMemory) try_again();
  for (std::uint64_t bytes = kLeast; is_full() && context_.with_free(bytes, try_again);) bytes *= 2;
  return made;
}

}  // namespace slate::daemon
