#include "daemon/engine/local_memory.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace slate::daemon {
namespace {

/// Sizes are rounded up to it, so that few calls change the size.
constexpr std::uint64_t kStep = 1024;

// A change is followed by so many times its own duration without one, and no more than the maximum.
constexpr int kPause = 20;
constexpr std::chrono::seconds kLongestPause{5};

using Clock = std::chrono::steady_clock;

}  // namespace

LocalMemory::LocalMemory(device::Device& device)
    : device_(device), threads_(resident_threads(device.info())) {}

LocalMemory::~LocalMemory() {
  SLATE_CHECK(shares_.empty());
}

LocalMemory::Share::~Share() {
  SLATE_CHECK(memory_ == nullptr);
}

Result<void> LocalMemory::Share::need(std::uint64_t bytes, MemoryManager& memory) {
  const std::uint64_t rounded = (bytes + kStep - 1) / kStep * kStep;
  if (rounded <= granted_) return {};
  const MutexLock lock(pool_.mutex_);
  if (rounded > pool_.needed()) {
    const bool is_new = std::exchange(memory_, &memory) == nullptr;
    if (const auto grown = pool_.grow(*this, rounded); !grown) {
      if (is_new) memory_ = nullptr;
      return grown;
    }
  }
  if (std::ranges::find(pool_.shares_, this) == pool_.shares_.end()) pool_.shares_.push_back(this);
  memory_ = &memory;
  granted_ = rounded;
  pool_.note_excess();
  return {};
}

/// The share is charged for all, in place of the one before. Otherwise all stays as it was.
Result<void> LocalMemory::grow(Share& share, std::uint64_t bytes) {
  if (payer_ != nullptr) payer_->memory_->finish_charge(paid_, false);
  const auto back = [&](const Error& error) SLATE_REQUIRES(mutex_) {
    if (payer_ != nullptr) payer_->memory_->charge_anyway(paid_);
    return std::unexpected(error);
  };
  if (const auto charged = share.memory_->charge(cost(bytes)); !charged)
    return back(charged.error());
  if (bytes > present_) {
    if (const auto done = set(bytes); !done) {
      share.memory_->finish_charge(cost(bytes), false);
      return back(done.error());
    }
  }
  payer_ = &share;
  paid_ = cost(bytes);
  return {};
}

void LocalMemory::Share::release(bool alone) {
  if (memory_ == nullptr) return;
  const MutexLock lock(pool_.mutex_);
  std::erase(pool_.shares_, this);
  if (pool_.payer_ == this) {
    memory_->finish_charge(pool_.paid_, false);
    pool_.payer_ = pool_.largest();
    pool_.paid_ = pool_.cost(pool_.needed());
    // It has what it needs already, so it cannot be refused.
    if (pool_.payer_ != nullptr) pool_.payer_->memory_->charge_anyway(pool_.paid_);
  }
  memory_ = nullptr;
  granted_ = kBase;
  pool_.note_excess();
  if (alone) {
    pool_.next_change_ = {};
    pool_.shrink();
  }
}

bool LocalMemory::trim() {
  if (excess() == 0) return false;
  const MutexLock lock(mutex_);
  return shrink();
}

bool LocalMemory::shrink() {
  const std::uint64_t wanted = needed();
  if (present_ <= wanted) return false;
  if (const auto done = set(wanted); !done) {
    log_warning("local memory that nobody needs stays on the device: {}", done.error().message);
    return false;
  }
  note_excess();
  return true;
}

/// Changes the size on the device. Waits before, if the last change was too short a time ago.
Result<void> LocalMemory::set(std::uint64_t bytes) {
  std::this_thread::sleep_until(next_change_);
  const auto began = Clock::now();
  const auto done = device_.set_local_memory(bytes);
  const auto ended = Clock::now();
  next_change_ = ended + std::min<Clock::duration>((ended - began) * kPause, kLongestPause);
  if (done) present_ = bytes;
  return done;
}

LocalMemory::Share* LocalMemory::largest() const {
  const auto largest = std::ranges::max_element(shares_, {}, &Share::granted_);
  return largest == shares_.end() ? nullptr : *largest;
}

/// Bytes of a thread that the sessions need together.
std::uint64_t LocalMemory::needed() const {
  const Share* const most = largest();
  return most == nullptr ? kBase : most->granted_;
}

void LocalMemory::note_excess() {
  excess_.store(cost(present_) - std::min(cost(present_), cost(needed())));
}

}  // namespace slate::daemon
