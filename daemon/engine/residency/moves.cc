#include "daemon/engine/residency/moves.h"

#include <limits>
#include <utility>

#include "daemon/engine/own_copies.h"

namespace slate::daemon {
namespace {

constexpr std::size_t kMostUnderWay = 2;

}  // namespace

Moves::~Moves() {
  for (const UnderWay& each : under_way_) device_.destroy_event(each.event);
  if (stream_ != device::Stream{}) device_.destroy_stream(stream_);
}

Result<void> Moves::open() {
  if (stream_ != device::Stream{}) return {};
  const auto stream = device_.create_stream(std::numeric_limits<int>::min());
  if (!stream) return std::unexpected(stream.error());
  stream_ = *stream;
  return {};
}

Result<void> Moves::begin(const Place& to, const Place& from, std::uint64_t bytes, Then then) {
  if (const auto opened = open(); !opened) return opened;
  while (under_way_.size() >= kMostUnderWay) {
    if (const auto ended = end_first(); !ended) return ended;
  }
  const auto event = device_.create_event(false);
  if (!event) return std::unexpected(event.error());
  under_way_.push_back({*event, std::move(then)});
  auto done = device_.copy(to, from, {.width = bytes, .height = 1}, stream_);
  if (done) done = device_.record(*event, stream_);
  if (!done) {
    device_.destroy_event(*event);
    under_way_.pop_back();
  }
  return done;
}

Result<void> Moves::end_first() {
  const UnderWay first = std::move(under_way_.front());
  under_way_.pop_front();
  Result<void> outcome = wait_until_reached(device_, first.event);
  device_.destroy_event(first.event);
  return first.then(std::move(outcome));
}

Result<void> Moves::finish() {
  Result<void> outcome;
  while (!under_way_.empty()) {
    const auto ended = end_first();
    if (!ended && outcome) outcome = ended;
  }
  return outcome;
}

}  // namespace slate::daemon
