#include "ipc/packets.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace slate::ipc {
namespace {

std::vector<UniqueFd> take_descriptors(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("making a pair of sockets");
  return std::pair<UniqueFd, UniqueFd>{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<void> send_packet(int socket, std::span<const iovec> pieces, std::span<const int> fds,
                         int flags) {
  SLATE_CHECK(fds.size() <= kMostPacketFds);
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPacketFds * sizeof(int))] = {};
  msghdr message = message_of(pieces);
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0) {
    if (errno != EINTR) return fail_errno("sending a packet");
  }
  return {};
}

Result<std::optional<Packet>> receive_packet(int socket, std::span<const iovec> pieces) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPacketFds * sizeof(int))] = {};
  msghdr message = message_of(pieces);
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (got <= 0) return fail(ErrorCode::kUnavailable, "the other end of the socket is closed");
  Packet packet{static_cast<std::size_t>(got), take_descriptors(message)};
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return fail(ErrorCode::kProtocol, "a packet is longer than any should be");
  return packet;
}

}  // namespace slate::ipc
