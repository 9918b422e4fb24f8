// EngineLink: the socket between supervisor and engine, and the messages on it. Both ends are the
// same binary and trust one another; nothing that a client wrote travels here except names for
// display. A SOCK_SEQPACKET pair: one message is one packet, descriptors ride along.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::daemon {

enum class LinkType : std::uint32_t {
  // Engine to supervisor.
  kReady = 1,         // text: the bytes of a DeviceInfo
  kStartFailed = 2,   // code, text
  kSessionEnded = 3,  // session; number: launches it made; flags: kSessionFaulted
  kFault = 4,         // code, text: the device is lost, the engine is about to end
  kStatusReport = 5,  // number of the request; text: a piece of JSON; flags: kLastPiece
  // Supervisor to engine.
  kAddSession =
      6,  // session, pid, uid, limit; text: program; descriptors: from_client, to_client, segment
  kStatusRequest = 7,  // number
  kStop = 8,           // text: the reason that clients see
};

inline constexpr std::uint32_t kSessionFaulted = 1;
inline constexpr std::uint32_t kLastPiece = 1;
inline constexpr std::size_t kMaxLinkText = 32 << 10;

/// Exit status of an engine that reported kFault first.
inline constexpr int kEngineFaultStatus = 3;

struct LinkHeader {
  LinkType type{};
  ErrorCode code = ErrorCode::kNone;
  std::uint64_t session = 0;
  std::uint64_t number = 0;
  std::uint64_t limit = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t flags = 0;
};

struct LinkMessage {
  LinkHeader header;
  std::string text;
  std::vector<UniqueFd> fds;
};

class EngineLink {
 public:
  EngineLink() = default;
  explicit EngineLink(UniqueFd socket) : socket_(std::move(socket)) {}
  static Result<std::pair<UniqueFd, UniqueFd>> make_pair();

  int fd() const { return socket_.get(); }
  /// Waits up to two seconds for room. Any thread. Requires: text is at most kMaxLinkText.
  Result<void> send(const LinkHeader& header, std::string_view text = {},
                    std::span<const int> fds = {}) const;
  /// The next message if one is there; kUnavailable when the other end is closed. One thread.
  Result<std::optional<LinkMessage>> receive() const;

 private:
  UniqueFd socket_;
};

}  // namespace slate::daemon
