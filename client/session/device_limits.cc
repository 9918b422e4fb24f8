#include "client/session/device_limits.h"

#include "client/session/session.h"

namespace slate::client {
namespace {

constexpr std::size_t kMostStackBytes = 512 << 10;

/// Devices from 9.0 on have no synchronisation in kernels.
Allowed<void> check(const Session& session, int limit) {
  if (limit < 0 || limit >= DeviceLimits::kCount) return refuse(Refusal::kInvalidValue);
  if (limit == DeviceLimits::kSyncDepth && session.capability() >= 90)
    return refuse(Refusal::kUnsupportedLimit);
  return {};
}

}  // namespace

Allowed<std::size_t> DeviceLimits::get(Session& session, int limit) const {
  if (auto ok = check(session, limit); !ok) return std::unexpected(ok.error());
  if (limit == kPrintf) return session.printing().fifo_bytes();
  if (limit == kHeap) return session.heap().bytes();
  return values_[static_cast<std::size_t>(limit)].load();
}

Allowed<void> DeviceLimits::set(Session& session, int limit, std::size_t value) {
  if (auto ok = check(session, limit); !ok) return ok;
  if (limit == kStack && value > kMostStackBytes) return refuse(Refusal::kInvalidValue);
  Result<void> done;
  if (limit == kPrintf) done = session.printing().set_fifo_bytes(value);
  if (limit == kStack) done = session.modules().raise_stack(value);
  if (limit == kPendingLaunches) done = session.modules().raise_pending_launches(value);
  if (limit == kHeap) done = session.heap().set_bytes(value);
  if (!done) return std::unexpected<Refused>(done.error());
  values_[static_cast<std::size_t>(limit)] = value;
  return {};
}

void DeviceLimits::reset() {
  for (std::size_t i = 0; i < kCount; ++i) values_[i] = kFresh[i];
}

}  // namespace slate::client
