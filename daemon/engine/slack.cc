#include "daemon/engine/slack.h"

#include "base/check.h"

namespace slate::daemon {

Slack::~Slack() {
  SLATE_CHECK(places_.empty());
}

bool Slack::put(device::Address address) {
  const device::AddressRange range{address, bytes_};
  const auto mapped =
      places_.empty() ? device_.map(range) : device_.map_again(range, *places_.begin());
  if (mapped) places_.insert(address);
  return mapped.has_value();
}

void Slack::remove(device::Address address) {
  if (is_at(address) && places_.size() > 1) unmap(address);
}

void Slack::clear() {
  while (!places_.empty()) unmap(*places_.begin());
}

void Slack::unmap(device::Address address) {
  places_.erase(address);
  // Only a device that is lost refuses, and its engine is about to end.
  (void)device_.unmap({address, bytes_});
}

}  // namespace slate::daemon
