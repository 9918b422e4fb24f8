#include "daemon/engine_link.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace slate::daemon {
namespace {

constexpr std::size_t kMaxFds = 3;

void take_descriptors(msghdr& message, std::vector<UniqueFd>& fds) {
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
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> EngineLink::make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("socketpair");
  std::pair<UniqueFd, UniqueFd> pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  const timeval limit{2, 0};
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  return pair;
}

Result<void> EngineLink::send(const LinkHeader& header, std::string_view text,
                              std::span<const int> fds) const {
  return send_with(0, header, text, fds);
}

Result<void> EngineLink::try_send(const LinkHeader& header, std::string_view text,
                                  std::span<const int> fds) const {
  return send_with(MSG_DONTWAIT, header, text, fds);
}

Result<void> EngineLink::send_with(int flags, const LinkHeader& header, std::string_view text,
                                   std::span<const int> fds) const {
  SLATE_CHECK(text.size() <= kMaxLinkText && fds.size() <= kMaxFds);
  LinkHeader copy = header;
  iovec pieces[2] = {{&copy, sizeof(copy)}, {const_cast<char*>(text.data()), text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = text.empty() ? 1 : 2;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  while (sendmsg(socket_.get(), &message, MSG_NOSIGNAL | flags) < 0) {
    if (errno != EINTR) return fail_errno("engine link");
  }
  return {};
}

Result<void> EngineLink::send_report(std::uint64_t number, std::string_view text,
                                     ErrorCode code) const {
  do {
    const std::string_view piece = text.substr(0, kMaxLinkText);
    text.remove_prefix(piece.size());
    const LinkHeader header{.type = LinkType::kStatusReport,
                            .code = code,
                            .number = number,
                            .flags = text.empty() ? kLastPiece : 0};
    if (auto sent = send(header, piece); !sent) return sent;
  } while (!text.empty());
  return {};
}

Result<std::optional<LinkMessage>> EngineLink::receive() const {
  LinkMessage result;
  result.text.resize(kMaxLinkText);
  iovec pieces[2] = {{&result.header, sizeof(result.header)},
                     {result.text.data(), result.text.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (got < static_cast<ssize_t>(sizeof(LinkHeader))) {
    return fail(ErrorCode::kUnavailable, "the other end of the engine link is closed");
  }
  take_descriptors(message, result.fds);
  result.text.resize(static_cast<std::size_t>(got) - sizeof(LinkHeader));
  return result;
}

}  // namespace slate::daemon
