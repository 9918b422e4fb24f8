// EngineLink: the socket between supervisor and engine, and the messages on it. Both ends are the
// same binary and trust one another. Of what clients wrote, only names for display travel here. A
// SOCK_SEQPACKET pair: one message is one packet, with its descriptors.
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
  // number: kLinkVersion; limit: bytes free on the device; user_limit: Device::own_bytes(); text: a
  // DeviceInfo's bytes
  kReady = 1,
  kStartFailed = 2,  // code, text
  // session; number: its launches; flags: kSessionFaulted; text: why it could not begin, if so
  kSessionEnded = 3,
  // code, text: the device is lost, the engine is about to end; session: the likely cause, 0:
  // unknown; flags: kFrozen
  kFault = 4,
  kAlive = 13,  // to the engine: a question; back: its answer
  kBlame = 15,  // session; text: what it did to others
  // session; flags: BookKind, number: key, of the entry of the session's book that the memory
  // belongs
  // to; a descriptor. The supervisor holds it until kLetGo, or until the session has ended. Before
  // kAddSession it hands all of them to the next engine.
  kHold = 16,
  kLetGo = 17,  // the same, without a descriptor
  kFence = 18,  // to the supervisor: a question; back: all that was sent before was handled
  // session; number: its launches. It is not served here any more, and goes on elsewhere.
  kSessionLeft = 19,
  kSessionStays = 20,  // session; text: why it cannot leave. To the engine: it may stay.
  kNeedsRoom = 23,     // the device has no memory left: a spare engine's may help
  // session; flags: kWaitsForWord. It loads code that cannot be fenced.
  kUnfenced = 21,
  // session: it waits for kernels of others that have no fence, and has not begun.
  kSessionWaits = 25,
  // The answer to a status, profile or trace request: its number; flags: kLastPiece.
  // text: a piece of JSON, or of the reason when code is not kNone.
  kStatusReport = 5,
  // Supervisor to engine.
  // session, pid, uid, limit, user_limit, weight, user_weight, priority, max_blocking_ms;
  // text: program;
  // descriptors: from_client, to_client,
  // socket, segment, book; code: the fault of which it is suspected; flags: kOthersCome
  kAddSession = 6,
  kStatusRequest = 7,  // number
  kStop = 8,           // text: the reason that clients see
  // The session's new weight and priority. The session may have ended meanwhile.
  kSetSession = 9,  // session, weight, priority
  kProfileRequest =
      10,              // number; text: for answer_profile_request(), daemon/profile/profile_desk.h
  kTraceRequest = 11,  // number; limit: microseconds to look back, 0: all
  kConfigure =
      12,  // the first message; pid: the supervisor's; flags: kSpare; text: as config_text()
  // The session is to end. It may have ended meanwhile.
  kEndSession = 14,  // session; text: the reason, of which its client was told
  // The session is to leave the engine, or to say why it cannot. It may have ended meanwhile.
  kLeave = 22,  // session; flags: kToHost, kWhenIdle
  // There is one more engine of this device that serves sessions. number: this engine's serial
  // number; a descriptor, the first time: the page of device time (time_page.h)
  kShareTime = 24,
};

/// To be raised with each change of the messages or the book (book.h): an engine may be of a newer
/// slated than its supervisor, but not of one with another number.
inline constexpr std::uint64_t kLinkVersion = 7;

inline constexpr std::uint32_t kSessionFaulted = 1;
inline constexpr std::uint32_t kLastPiece = 1;
/// The engine is to be kept ready, and tells what it takes.
inline constexpr std::uint32_t kSpare = 1;
/// Its device memory goes to the host, where the supervisor holds it.
inline constexpr std::uint32_t kToHost = 1;
/// It is served until a moment at which none of its work is under way.
inline constexpr std::uint32_t kWhenIdle = 2;
/// The session takes no more commands until it hears kLeave or kSessionStays.
inline constexpr std::uint32_t kWaitsForWord = 1;
/// Other users' sessions are there, or are about to come.
inline constexpr std::uint32_t kOthersCome = 1;
/// The device is poisoned, so that nothing runs there, and the engine writes to no session's memory
/// any more. Another engine can go on with them at once.
inline constexpr std::uint32_t kFrozen = 1;
inline constexpr std::size_t kMaxLinkText = 32 << 10;

/// A process of the binary is an engine when this is its only argument, and its end of the link is
/// this descriptor.
inline constexpr std::string_view kEngineArgument = "--engine";
inline constexpr int kEngineLinkFd = 3;

/// Exit status of an engine that reported kFault first.
inline constexpr int kEngineFaultStatus = 3;

struct LinkHeader {
  LinkType type{};
  ErrorCode code = ErrorCode::kNone;
  std::uint64_t session = 0;
  std::uint64_t number = 0;
  std::uint64_t limit = 0;
  std::uint64_t user_limit = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t flags = 0;
  std::int32_t priority = 0;   // higher goes first
  double weight = 1;           // > 0
  double user_weight = 1;      // > 0
  double max_blocking_ms = 0;  // 0: no bound
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
  /// Waits up to two seconds for room. Any thread. Requires: `text` has at most kMaxLinkText bytes.
  Result<void> send(const LinkHeader& header, std::string_view text = {},
                    std::span<const int> fds = {}) const;
  /// As send(), without waiting, for the supervisor: an error also when there is no room now. When
  /// another try is worth it, fd() is writable.
  Result<void> try_send(const LinkHeader& header, std::string_view text = {},
                        std::span<const int> fds = {}) const;
  /// Answers request `number` with as many kStatusReport messages as it takes. Any thread.
  /// Requires: no other answer to this request.
  Result<void> send_report(std::uint64_t number, std::string_view text,
                           ErrorCode code = ErrorCode::kNone) const;
  /// The next message, if one has come. kUnavailable when the other end is closed. One thread.
  Result<std::optional<LinkMessage>> receive() const;

 private:
  Result<void> send_with(int flags, const LinkHeader& header, std::string_view text,
                         std::span<const int> fds) const;

  UniqueFd socket_;
};

}  // namespace slate::daemon
