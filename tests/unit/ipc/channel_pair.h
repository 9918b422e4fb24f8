// Both ends of a session inside one process, for tests.
#pragma once

#include <memory>
#include <utility>

#include "tests/unit/ipc/session_ends.h"

namespace slate::ipc {

struct ChannelPair {
  std::unique_ptr<ClientChannel> client;
  std::unique_ptr<EngineChannel> engine;
  /// A second mapping of the segment, for tests that play a hostile client.
  Segment raw;
};

inline ChannelPair make_channel_pair(const DeviceInfo& device = {}, std::uint64_t limit = 1 << 30) {
  SessionEnds made(device, limit);
  return {std::move(made.client),
          std::make_unique<EngineChannel>(std::move(made.ends), std::move(made.segment)),
          std::move(made.raw)};
}

}  // namespace slate::ipc
