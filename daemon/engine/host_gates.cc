#include "daemon/engine/host_gates.h"

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {
namespace {

constexpr std::uint32_t kMostGates = 16384;
constexpr std::uint64_t kWordBytes = 8;

/// A word of eight such bytes. While it is being filled it is none of the words that open a gate.
constexpr std::uint64_t word_of(std::uint8_t byte) {
  return 0x0101010101010101u * byte;
}

}  // namespace

HostGates::~HostGates() {
  SLATE_CHECK(words_.bytes == 0);
}

Result<void> HostGates::prepare() {
  if (words_.bytes != 0) return {};
  const std::uint64_t bytes = device_.granularity();
  const auto base = device_.reserve(bytes);
  if (!base) return std::unexpected(base.error());
  const device::AddressRange range{*base, bytes};
  if (const auto mapped = device_.map(range); !mapped) {
    device_.unreserve(range);
    return mapped;
  }
  const auto writer = device_.create_stream(0);
  if (!writer) {
    (void)device_.unmap(range);
    device_.unreserve(range);
    return std::unexpected(writer.error());
  }
  words_ = range;
  writer_ = *writer;
  const auto gates =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostGates, bytes / kWordBytes));
  values_.assign(gates, 0);
  const std::lock_guard lock(mutex_);
  for (std::uint32_t gate = gates; gate > 0; --gate) free_.push_back(gate - 1);
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
  // Another value than the one that the word has, which is also 0 at first.
  values_[gate] = static_cast<std::uint8_t>(values_[gate] % 255 + 1);
  const auto waits =
      device_.wait_value(stream, words_.base + gate * kWordBytes, word_of(values_[gate]));
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
  return device_.fill(words_.base + gate * kWordBytes, kWordBytes, values_[gate], {kWordBytes, 1},
                      writer_);
}

void HostGates::open_all() {
  while (!closed_.empty()) {
    // Only a lost device fails here, on which nothing waits any more.
    if (const auto done = open(closed_.begin()->first); !done) return closed_.clear();
  }
}

void HostGates::passed(std::uint32_t gate) {
  const std::lock_guard lock(mutex_);
  free_.push_back(gate);
}

void HostGates::release() {
  if (words_.bytes == 0) return;
  device_.destroy_stream(writer_);
  // What cannot be unmapped any more is lost with the device.
  (void)device_.unmap(words_);
  device_.unreserve(words_);
  words_ = {};
}

}  // namespace slate::daemon
