#include "daemon/engine/commands/memory_commands.h"

#include <algorithm>
#include <utility>

namespace slate::daemon {

using ipc::CommandType;

Result<void> MemoryCommands::start(std::uint64_t limit,
                                   std::unique_ptr<MemoryLedger::Account> account,
                                   std::chrono::milliseconds wait) {
  wait_ = wait;
  auto manager =
      MemoryManager::make(context_.device, limit, std::move(account), context_.book.get(),
                          context_.window().reservation, make_backing());
  if (!manager) return std::unexpected(manager.error());
  set_up(std::move(*manager));
  return {};
}

/// Null without a swap.
std::unique_ptr<SegmentBacking> MemoryCommands::make_backing() {
  if (context_.residency == nullptr) return nullptr;
  return std::make_unique<SegmentBacking>(context_.device, *context_.residency,
                                          context_.residency->enter(context_.tenant),
                                          context_.book.get());
}

void MemoryCommands::set_up(std::unique_ptr<MemoryManager> manager) {
  manager_ = std::move(manager);
  manager_->unmap_later([&fence = context_.fence] { return fence.is_on(); },
                        [this](device::AddressRange range) {
                          context_.fence.take_out(range);
                          if (context_.wake) context_.wake();
                        });
  seen_.store(manager_.get());
}

Result<void> MemoryCommands::unmap_left() {
  if (!has_left()) return {};
  return context_.checked(context_.retirement.after_present_work(
      [this, left = manager_->take_left()] { manager_->unmap_left(left); }));
}

Result<void> MemoryCommands::start_again(std::uint64_t limit,
                                         std::unique_ptr<MemoryLedger::Account> account,
                                         std::chrono::milliseconds wait, PastMemory past) {
  wait_ = wait;
  auto manager = MemoryManager::make_again(context_.device, limit, std::move(account),
                                           context_.book.get(), past, make_backing());
  if (!manager) return std::unexpected(manager.error());
  set_up(std::move(*manager));
  for (const PastMemory::Block& block : past.blocks) {
    if (block.retired) retired_.push_back(block.range.base);
  }
  return {};
}

Result<void> MemoryCommands::free_retired() {
  for (const device::Address address : std::exchange(retired_, {})) {
    const auto done = context_.checked(context_.retirement.after_present_work(
        [this, address] { manager_->finish_free(address); }));
    if (!done) return done;
  }
  return {};
}

/// What is above the session's own limit does not come by waiting.
bool MemoryCommands::may_wait_for_others(std::chrono::steady_clock::time_point deadline) const {
  return manager_->waits_for_others() && std::chrono::steady_clock::now() < deadline &&
         !context_.faults.failed() && !context_.is_over();
}

void MemoryCommands::release() {
  local_.release(context_.executor.is_alone());
  // But for what other sessions have open: that goes with their last close.
  if (manager_) manager_->release();
}

std::uint64_t MemoryCommands::charged() const {
  const MemoryManager* manager = seen_.load();
  return manager != nullptr ? manager->charged() : 0;
}

MemoryPlaces MemoryCommands::places() const {
  MemoryManager* const manager = seen_.load();
  if (manager == nullptr) return {};
  SegmentBacking* const backing = manager->backing();
  if (backing == nullptr) return {.on_device = manager->charged()};
  Residency::Motion motion = backing->residency().motion(backing->tenant());
  return {.on_device = backing->tenant().on_device(),
          .on_host = backing->on_host(),
          .waits = backing->tenant().waits(),
          .leaves = motion.leaves,
          .comes = motion.comes,
          .waits_for = std::move(motion.waits_for)};
}

Result<void> MemoryCommands::on(const Call<CommandType::kMemoryAllocate>& call) {
  const auto address = with_room([&] { return manager_->allocate(call.body.bytes); });
  if (!address) return context_.checked(std::unexpected(address.error()));
  call.reply.set(ipc::AddressReply{*address});
  return {};
}

Result<void> MemoryCommands::on(const Call<CommandType::kMemoryFree>& call) {
  if (const auto retired = manager_->retire(call.body.address); !retired) return retired;
  context_.exports->withdraw(context_.session, call.body.address);
  const auto ordered = context_.checked(context_.retirement.after_present_work(
      [this, address = call.body.address] { manager_->finish_free(address); }));
  return ordered ? unmap_left() : ordered;
}

Result<void> MemoryCommands::on(const Call<CommandType::kMemoryInfo>& call) {
  (void)settle();
  const auto free = context_.device.free_memory();
  if (!free) return context_.checked(std::unexpected(free.error()));
  // What is not on the device is the session's all the same.
  const std::uint64_t most =
      backing() ? backing()->residency().chargeable(backing()->tenant()) : *free + pool_->excess();
  call.reply.set(ipc::MemoryInfoReply{std::min(manager_->chargeable(), most), manager_->limit()});
  return {};
}

Result<void> MemoryCommands::on(const Call<CommandType::kMemoryExport>& call) {
  const auto handle =
      context_.exports->offer(context_.session, context_.uid, manager_, call.body.address);
  if (!handle) return std::unexpected(handle.error());
  call.reply.set(ipc::ShareReply{*handle});
  return {};
}

}  // namespace slate::daemon
