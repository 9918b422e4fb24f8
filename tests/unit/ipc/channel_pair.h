// Both ends of a session inside one process, over pipes and a real segment, for tests.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "ipc/channel.h"

namespace slate::ipc {

struct ChannelPair {
  std::unique_ptr<ClientChannel> client;
  std::unique_ptr<EngineChannel> engine;
  /// A second mapping of the segment, for tests that play a hostile client.
  Segment raw;
};

inline ChannelPair make_channel_pair(const DeviceInfo& device = {}, std::uint64_t limit = 1 << 30) {
  static std::atomic<int> next{0};
  const std::string name =
      "/slate-test-" + std::to_string(::getpid()) + "-" + std::to_string(next.fetch_add(1));
  int to_daemon[2], to_client[2];
  if (::pipe2(to_daemon, O_NONBLOCK | O_CLOEXEC) != 0 ||
      ::pipe2(to_client, O_NONBLOCK | O_CLOEXEC) != 0)
    std::abort();
  auto made = Segment::create(name, ::geteuid(), device, limit);
  auto engine_side = Segment::open(name, sizeof(SegmentLayout));
  auto raw = Segment::open(name, sizeof(SegmentLayout));
  Segment::remove(name);
  Connection connection;
  connection.to_daemon.reset(to_daemon[1]);
  connection.from_daemon.reset(to_client[0]);
  SessionFifos fifos;
  fifos.from_client.reset(to_daemon[0]);
  fifos.to_client.reset(to_client[1]);
  fifos.owner = ::geteuid();
  ChannelPair pair;
  pair.client = std::make_unique<ClientChannel>(std::move(connection), std::move(*made));
  pair.engine = std::make_unique<EngineChannel>(std::move(fifos), std::move(*engine_side));
  pair.raw = std::move(*raw);
  return pair;
}

}  // namespace slate::ipc
