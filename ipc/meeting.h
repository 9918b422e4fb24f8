// Meeting: where the runtime directory is, how a program introduces itself to slated over a Unix
// socket, and what both sides hold from then on. Used once for each session, and for each question
// of slatectl. What is said afterwards is channel.h. Thread: any; one object, one thread at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/device_info.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/messages.h"
#include "ipc/segment.h"

namespace slate::ipc {

/// Returns `explicit_dir` if it is not empty, else $SLATE_RUNTIME_DIR, else /run/slate if it has a
/// socket that this user may use, else $XDG_RUNTIME_DIR/slate, else /tmp/slate-<uid>. Does not
/// create it.
std::string runtime_directory(std::string_view explicit_dir = {});

std::string meeting_path(const std::string& runtime_dir);  // <dir>/slated.sock

// --- Daemon's side -------------------------------------------------------------------------------

/// Who came, by the kernel's word.
struct Visitor {
  UniqueFd socket;  // non-blocking
  uid_t uid = 0;
  std::vector<gid_t> groups;
  pid_t pid = 0;  // in this process's namespace; 0: not in it
};

/// The runtime directory and the socket, both of this daemon and removed on destruction. A lock
/// file keeps a second daemon out.
class MeetingPoint {
 public:
  enum class Guests { kOwnUser, kEverybody };

  /// `given`: a listening socket that a service manager made; none: it is made here.
  /// Errors: kUnavailable naming the pid of a daemon that is there already; kIo; kInvalidValue for
  /// a given descriptor that is no such socket.
  static Result<MeetingPoint> create(const std::string& runtime_dir, Guests guests,
                                     UniqueFd given = {});
  /// The meeting point of this process's program before, with its descriptors.
  static MeetingPoint again(std::string directory, UniqueFd socket, UniqueFd lock, bool given);
  MeetingPoint(MeetingPoint&&) noexcept = default;
  MeetingPoint& operator=(MeetingPoint&&) noexcept = default;
  ~MeetingPoint();

  int fd() const { return socket_.get(); }  // non-blocking; readable when somebody has come
  int lock_fd() const { return lock_.get(); }
  bool is_given() const { return given_; }
  const std::string& directory() const { return directory_; }
  /// The next one who has come. Errors: kLimit when this process has no descriptor left.
  Result<std::optional<Visitor>> accept();

 private:
  MeetingPoint() = default;
  std::string directory_;
  bool given_ = false;  // whether the socket's name is the service manager's
  UniqueFd lock_;
  UniqueFd socket_;
};

/// The visitor's Hello, if it has come. Errors: kUnavailable once the visitor is gone; kProtocol
/// for anything else than a Hello of this version, with the reason in words.
Result<std::optional<Hello>> receive_hello(const Visitor& visitor);

/// The daemon's ends of a session, which the engine gets.
struct DaemonEnds {
  UniqueFd from_client;  // read end, non-blocking
  UniqueFd to_client;    // write end, non-blocking
  UniqueFd socket;       // carries descriptors to the client; non-blocking
};

/// What a session begins with, on both sides. The FIFOs have no name any more.
struct NewSession {
  DaemonEnds daemon;  // without the socket
  Segment segment;
  UniqueFd to_daemon;    // client's write end, non-blocking
  UniqueFd from_daemon;  // client's read end, non-blocking

  /// Makes FIFOs and segment. `folder`: where the FIFOs have their names for a moment. Errors:
  /// kOutOfMemory, kIo.
  static Result<NewSession> make(const std::string& folder, const DeviceInfo& device,
                                 std::uint64_t memory_limit);
};

/// Answers a Hello; never waits. `session`: what a session's client gets; null: nothing.
Result<void> send_welcome(int socket, const Welcome& welcome, const NewSession* session = nullptr);

/// Gives the client shared memory `id`, which it takes by receive_memory(); never waits.
Result<void> send_memory(int socket, std::uint64_t id, int memory);

// --- Client's side -------------------------------------------------------------------------------

/// The client's ends, and the daemon's answer.
struct Connection {
  UniqueFd socket;       // slatectl's questions go over it; a session's gets descriptors from it
  UniqueFd to_daemon;    // write end, non-blocking; a session's
  UniqueFd from_daemon;  // read end, non-blocking; a session's
  UniqueFd segment;      // a session's
  Welcome welcome;
};
/// What a program wants of the daemon, if that grants it; empty: as configured.
struct Wishes {
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
  std::optional<std::uint64_t> memory = {};  // the most device memory, in bytes
};
/// How long a program waits for the daemon, and what it does once the wait takes long.
struct Patience {
  template <typename Rep, typename Period>
  Patience(std::chrono::duration<Rep, Period> longest)  // NOLINT: most callers have no more to say
      : timeout(longest) {}
  Patience(std::chrono::milliseconds longest, std::chrono::milliseconds usual,
           std::function<void()> say)
      : timeout(longest), tell_after(usual), tell(std::move(say)) {}

  std::chrono::milliseconds timeout;
  std::chrono::milliseconds tell_after{0};
  std::function<void()> tell;  // called once, after `tell_after`; empty: nothing is
};
/// Connects, sends Hello and waits for Welcome. When the daemon has too many visitors it tries
/// again, after ever longer pauses, until the patience ends. Errors:
/// - kInitialization: no daemon listens, no answer came in time, or the runtime directory belongs
///   to neither root nor this user;
/// - the daemon's own code and message when it refuses.
Result<Connection> connect_to_daemon(const std::string& runtime_dir, HelloKind kind,
                                     const Patience& patience, const Wishes& wishes = {});

/// The shared memory `id`, which the daemon has sent already. The last one that came counts: an
/// engine may have died between sending memory and saying so. Requires: the caller asks for one at
/// a time. Errors: kProtocol for another's; kUnavailable.
Result<UniqueFd> receive_memory(int socket, std::uint64_t id);

}  // namespace slate::ipc
