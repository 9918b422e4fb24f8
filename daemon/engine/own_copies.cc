#include "daemon/engine/own_copies.h"

#include <chrono>
#include <limits>

namespace slate::daemon {
namespace {

/// A device that takes longer does not answer any more.
constexpr std::chrono::seconds kLongest{10};

}  // namespace

Result<void> wait_until_reached(device::Device& device, device::Event event) {
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (true) {
    const auto done = device.query(event);
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::kUnavailable, "the device does not answer");
    device.wait_for_progress(std::chrono::microseconds(20));
  }
}

OwnCopies::~OwnCopies() {
  if (event_ != device::Event{}) device_.destroy_event(event_);
  if (stream_ != device::Stream{}) device_.destroy_stream(stream_);
}

Result<void> OwnCopies::open() {
  if (stream_ != device::Stream{}) return {};
  const auto stream = device_.create_stream(std::numeric_limits<int>::min());
  if (!stream) return std::unexpected(stream.error());
  const auto event = device_.create_event(false);
  if (!event) {
    device_.destroy_stream(*stream);
    return std::unexpected(event.error());
  }
  stream_ = *stream;
  event_ = *event;
  return {};
}

Result<void> OwnCopies::begin(const Place& to, const Place& from, std::uint64_t bytes) {
  if (const auto opened = open(); !opened) return opened;
  return device_.copy(to, from, {.width = bytes, .height = 1}, stream_);
}

Result<void> OwnCopies::finish() {
  if (const auto opened = open(); !opened) return opened;
  if (const auto recorded = device_.record(event_, stream_); !recorded) return recorded;
  return wait_until_reached(device_, event_);
}

}  // namespace slate::daemon
