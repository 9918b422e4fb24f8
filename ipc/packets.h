// Packets with descriptors over a Unix socket of type SOCK_SEQPACKET: one message is one packet.
// Used between programs and the supervisor, and between supervisor and engine. Thread: any; one
// direction of a socket, one thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::ipc {

inline constexpr std::size_t kMostPacketFds = 5;

/// Two sockets that are each other's peer.
Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair();

/// Sends the pieces as one packet. `flags`: MSG_DONTWAIT, or 0 to wait for room. Errors: kIo; with
/// MSG_DONTWAIT also where there is no room now. Requires: at most kMostPacketFds descriptors.
Result<void> send_packet(int socket, std::span<const iovec> pieces, std::span<const int> fds = {},
                         int flags = 0);

struct Packet {
  std::size_t bytes = 0;
  std::vector<UniqueFd> fds;
};

/// The next packet, if one is there, with its bytes in `pieces`; never waits. Errors: kUnavailable
/// once the peer is gone; kProtocol for a packet longer than `pieces`.
Result<std::optional<Packet>> receive_packet(int socket, std::span<const iovec> pieces);

}  // namespace slate::ipc
