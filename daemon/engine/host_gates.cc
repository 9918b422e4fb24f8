#include "daemon/engine/host_gates.h"

#include <unistd.h>

#include "base/check.h"
#include "ipc/host_memory.h"

namespace slate::daemon {
namespace {

constexpr std::uint32_t kMostGates = 16384;

}  // namespace

HostGates::~HostGates() {
  SLATE_CHECK(words_.bytes == 0);
}

Result<void> HostGates::prepare() {
  if (words_.bytes != 0) return {};
  constexpr std::uint64_t kBytes = kMostGates * kWordBytes;
  static_assert(kBytes % ipc::HostMemory::kGrain == 0);
  // For ourselves: its name is not made, and the number plays no part.
  const auto memory = ipc::HostMemory::create(0, ::geteuid(), kBytes);
  if (!memory) return std::unexpected(memory.error());
  const auto base = device_.map_host(memory->fd(), kBytes, 0);
  if (!base) return std::unexpected(base.error());
  words_ = {*base, kBytes};
  values_.assign(kMostGates, 0);
  const std::lock_guard lock(mutex_);
  for (std::uint32_t gate = kMostGates; gate > 0; --gate) free_.push_back(gate - 1);
  return {};
}

Result<std::uint32_t> HostGates::close(device::Stream stream, std::uint64_t ticket) {
  if (closed_.contains(ticket)) return fail(ErrorCode::kProtocol, "a gate that is closed already");
  if (const auto ready = prepare(); !ready) return std::unexpected(ready.error());
  std::uint32_t gate = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return fail(ErrorCode::kLimit, "too many host functions are waiting");
    gate = free_.back();
    free_.pop_back();
  }
  const auto waits = device_.wait_value(stream, word_of(gate), ++values_[gate]);
  if (!waits) {
    passed(gate);
    return std::unexpected(waits.error());
  }
  closed_.emplace(ticket, gate);
  return gate;
}

Result<void> HostGates::open(std::uint64_t ticket) {
  const auto at = closed_.find(ticket);
  if (at == closed_.end()) return fail(ErrorCode::kInvalidHandle, "a gate that is not closed");
  const std::uint32_t gate = at->second;
  closed_.erase(at);
  return device_.write_value(word_of(gate), values_[gate]);
}

void HostGates::open_all() {
  while (!closed_.empty()) {
    (void)open(closed_.begin()->first);
  }
}

void HostGates::passed(std::uint32_t gate) {
  const std::lock_guard lock(mutex_);
  free_.push_back(gate);
}

void HostGates::release() {
  if (words_.bytes == 0) return;
  device_.unmap_host(words_);
  words_ = {};
}

}  // namespace slate::daemon
