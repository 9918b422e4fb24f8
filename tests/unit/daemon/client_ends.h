// What a supervisor has after the handshake with a client, and that client, made without one.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "ipc/channel.h"

namespace slate::daemon {

struct ClientEnds {
  ClientEnds(const DeviceInfo& device, std::uint64_t limit) {
    static std::atomic<int> next{0};
    const std::string name = "/slate-daemon-test-" + std::to_string(::getpid()) + "-" +
                             std::to_string(next.fetch_add(1));
    int to_daemon[2], to_client[2];
    if (::pipe2(to_daemon, O_NONBLOCK | O_CLOEXEC) != 0 ||
        ::pipe2(to_client, O_NONBLOCK | O_CLOEXEC) != 0) {
      std::abort();
    }
    segment = std::move(*ipc::Segment::create(name, ::geteuid(), device, limit));
    raw = std::move(*ipc::Segment::open(name, sizeof(ipc::SegmentLayout)));
    auto client_segment = ipc::Segment::open(name, sizeof(ipc::SegmentLayout));
    ipc::Segment::remove(name);
    bell.reset(::fcntl(to_daemon[1], F_DUPFD_CLOEXEC, 0));
    ipc::Connection connection;
    connection.to_daemon.reset(to_daemon[1]);
    connection.from_daemon.reset(to_client[0]);
    client =
        std::make_unique<ipc::ClientChannel>(std::move(connection), std::move(*client_segment));
    fifos = {UniqueFd(to_daemon[0]), UniqueFd(to_client[1]), ::geteuid()};
  }

  ipc::SessionFifos fifos;
  ipc::Segment segment;  // for the engine
  ipc::Segment raw;      // a second mapping, for playing a hostile client
  UniqueFd bell;         // a second write end to the engine: wake bytes; holds off end of file
  std::unique_ptr<ipc::ClientChannel> client;
};

}  // namespace slate::daemon
