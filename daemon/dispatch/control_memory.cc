// ControlMemory: one mapped range, cut into slots of one control block each.

#include "base/mutex.h"
#include "daemon/dispatch/worker_launch.h"

namespace slate::daemon {

struct ControlMemory::Slots {
  Mutex mutex;
  std::vector<device::Address> free SLATE_GUARDED_BY(mutex);
};

namespace {

// With a DispatchState a slot takes five times as much.
constexpr std::uint64_t kDispatchPieces = 4;

}  // namespace

Result<std::unique_ptr<ControlMemory>> ControlMemory::create(device::Device& device,
                                                             bool dispatches) {
  const std::uint64_t bytes = device.granularity() * (dispatches ? kDispatchPieces : 1);
  const auto base = device.reserve(bytes);
  if (!base) return std::unexpected(base.error());
  const device::AddressRange range{*base, bytes};
  if (const auto mapped = device.map(range); !mapped) {
    device.unreserve(range);
    return std::unexpected(mapped.error());
  }
  return std::unique_ptr<ControlMemory>(new ControlMemory(
      device, range, static_cast<std::uint32_t>(slate::sm_count(device.info())), dispatches));
}

ControlMemory::ControlMemory(device::Device& device, device::AddressRange range,
                             std::uint32_t sm_count, bool dispatches)
    : device_(device),
      range_(range),
      sm_count_(sm_count),
      dispatches_(dispatches),
      slots_(std::make_unique<Slots>()) {
  const std::uint64_t state = dispatches ? (sizeof(DispatchState) + 255) / 256 * 256 : 0;
  const std::uint64_t bytes = injector::ControlBlock::bytes(sm_count) + state;
  for (std::uint64_t at = range.bytes / bytes * bytes; at > 0; at -= bytes) {
    slots_->free.push_back(range.base + at - bytes);
  }
}

ControlMemory::~ControlMemory() {
  // What cannot be unmapped any more is lost with the device.
  [[maybe_unused]] const auto unmapped = device_.unmap(range_);
  device_.unreserve(range_);
}

bool ControlMemory::has_slot_for(const Share& share) const {
  const MutexLock lock(slots_->mutex);
  return share.slots_ < slots_->free.size();
}

Result<device::Address> ControlMemory::take(Share& share) {
  const MutexLock lock(slots_->mutex);
  if (share.slots_ >= slots_->free.size())
    return fail(ErrorCode::kLimit, "no control block is left for the session");
  const device::Address slot = slots_->free.back();
  slots_->free.pop_back();
  ++share.slots_;
  return slot;
}

void ControlMemory::give_back(device::Address slot, Share& share) {
  const MutexLock lock(slots_->mutex);
  slots_->free.push_back(slot);
  --share.slots_;
}

}  // namespace slate::daemon
