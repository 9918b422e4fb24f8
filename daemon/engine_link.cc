#include "daemon/engine_link.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <array>

#include "base/check.h"
#include "ipc/packets.h"

namespace slate::daemon {

Result<std::pair<UniqueFd, UniqueFd>> EngineLink::make_pair() {
  auto pair = ipc::make_socket_pair();
  if (!pair) return pair;
  const timeval limit{2, 0};
  for (const int end : {pair->first.get(), pair->second.get()})
    setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
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
  SLATE_CHECK(text.size() <= kMaxLinkText);
  LinkHeader copy = header;
  const std::array<iovec, 2> pieces{
      {{&copy, sizeof(copy)}, {const_cast<char*>(text.data()), text.size()}}};
  return ipc::send_packet(socket_.get(), pieces, fds, flags);
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
  const std::array<iovec, 2> pieces{
      {{&result.header, sizeof(result.header)}, {result.text.data(), result.text.size()}}};
  auto packet = ipc::receive_packet(socket_.get(), pieces);
  if (!packet) return std::unexpected(packet.error());
  if (!*packet) return std::nullopt;
  if ((*packet)->bytes < sizeof(LinkHeader))
    return fail(ErrorCode::kUnavailable, "the other end of the engine link is closed");
  result.fds = std::move((*packet)->fds);
  result.text.resize((*packet)->bytes - sizeof(LinkHeader));
  return result;
}

}  // namespace slate::daemon
