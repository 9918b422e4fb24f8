#include "device/cuda/watched_events.h"

#include <tuple>

#include "base/clock.h"

namespace slate::cuda {
namespace {

constexpr std::size_t kBlockBytes = 64 << 10;
// A fault keeps the word from being written, so the driver is asked now and then.
constexpr std::int64_t kLookEveryNs = 1'000'000;

}  // namespace

WatchedEvents::~WatchedEvents() {
  if (idle_ != nullptr) std::ignore = context_.call(context_.driver().cuStreamDestroy, idle_);
  for (void* block : blocks_) std::ignore = context_.call(context_.driver().cuMemFreeHost, block);
}

Result<void> WatchedEvents::grow() {
  const Driver& driver = context_.driver();
  if (auto present = check_present(driver.cuStreamWriteValue64); !present) return present;
  if (context_.attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) == 0) {
    return fail(ErrorCode::kNotSupported, "the GPU writes no 64-bit words for its streams");
  }
  if (idle_ == nullptr) {
    auto made = context_.call(driver.cuStreamCreateWithPriority, &idle_, CU_STREAM_NON_BLOCKING,
                              context_.lowest_priority());
    if (!made) return made;
  }
  void* block = nullptr;
  constexpr unsigned int kFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  if (auto made = context_.call(driver.cuMemHostAlloc, &block, kBlockBytes, kFlags); !made) {
    return made;
  }
  blocks_.push_back(block);
  auto* words = static_cast<std::uint64_t*>(block);
  for (std::size_t i = kBlockBytes / sizeof(Word); i > 0; --i) {
    slots_.push_back(std::make_unique<Slot>(Slot{new (words + i - 1) Word(0), 0}));
    free_.push_back(slots_.back().get());
  }
  return {};
}

Result<device::Event> WatchedEvents::create() {
  const MutexLock lock(mutex_);
  if (free_.empty()) {
    if (const auto grown = grow(); !grown) return std::unexpected(grown.error());
  }
  Slot* const slot = free_.back();
  free_.pop_back();
  return static_cast<device::Event>(reinterpret_cast<std::uintptr_t>(slot) | 1);
}

void WatchedEvents::destroy(device::Event event) {
  const MutexLock lock(mutex_);
  free_.push_back(&slot_of(event));
}

Result<void> WatchedEvents::record(device::Event event, CUstream stream) {
  Slot& slot = slot_of(event);
  // The default: what the stream did before is seen by all before the word is.
  const auto written = context_.call(context_.driver().cuStreamWriteValue64, stream,
                                     reinterpret_cast<CUdeviceptr>(slot.word), slot.recorded + 1,
                                     CU_STREAM_WRITE_VALUE_DEFAULT);
  if (written) ++slot.recorded;
  return written;
}

Result<bool> WatchedEvents::query(device::Event event) {
  const Slot& slot = slot_of(event);
  if (slot.word->load(std::memory_order_acquire) == slot.recorded) [[likely]]
    return true;
  if (const auto fault = look_for_fault(); !fault) return std::unexpected(fault.error());
  return false;
}

Result<void> WatchedEvents::look_for_fault() {
  const std::int64_t now = now_ns();
  if (!context_.lost()) {
    if (now - looked_ns_.load(std::memory_order_relaxed) < kLookEveryNs) return {};
    looked_ns_.store(now, std::memory_order_relaxed);
  }
  return context_.call(context_.driver().cuStreamQuery, idle_);
}

}  // namespace slate::cuda
