// Both ends of a new session in one process: real FIFOs, socket and segment, without a meeting.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "ipc/channel.h"
#include "ipc/packets.h"

namespace slate::ipc {

struct SessionEnds {
  /// Ends the process if the machine cannot give them.
  explicit SessionEnds(const DeviceInfo& device = {}, std::uint64_t limit = 1 << 30) {
    char folder[] = "/tmp/slate-ends-XXXXXX";
    if (::mkdtemp(folder) == nullptr) std::abort();
    auto made = NewSession::make(folder, device, limit);
    ::rmdir(folder);
    auto sockets = make_socket_pair();
    if (!made || !sockets) std::abort();
    ::fcntl(sockets->first.get(), F_SETFL, O_NONBLOCK);
    raw = map_again(made->segment);
    bell.reset(::fcntl(made->to_daemon.get(), F_DUPFD_CLOEXEC, 0));
    Connection connection;
    connection.socket = std::move(sockets->second);
    connection.to_daemon = std::move(made->to_daemon);
    connection.from_daemon = std::move(made->from_daemon);
    client = std::make_unique<ClientChannel>(std::move(connection), map_again(made->segment));
    ends = std::move(made->daemon);
    ends.socket = std::move(sockets->first);
    segment = std::move(made->segment);
  }
  static Segment map_again(const Segment& segment) {
    return std::move(*Segment::from_fd(UniqueFd(::fcntl(segment.fd(), F_DUPFD_CLOEXEC, 0))));
  }

  DaemonEnds ends;
  Segment segment;  // for the engine
  Segment raw;      // a second mapping, for playing a hostile client
  UniqueFd bell;    // a second write end to the engine: wake bytes; holds off end of file
  std::unique_ptr<ClientChannel> client;
};

}  // namespace slate::ipc
