// Meeting: where the runtime directory is, how a client introduces itself, how the daemon finds and
// checks the session directory that a client made. Used once a session, by both sides.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ipc/messages.h"

namespace slate::ipc {

/// `explicit_dir` if not empty, else $SLATE_RUNTIME_DIR, else /run/slate where a daemon's FIFO is,
/// else $XDG_RUNTIME_DIR/slate, else /tmp/slate-<uid>. Does not create it.
std::string runtime_directory(std::string_view explicit_dir = {});

std::string rendezvous_path(const std::string& runtime_dir);  // <dir>/slated.fifo
std::string sessions_path(const std::string& runtime_dir);    // <dir>/sessions

/// Prefix of the shared-memory names of the daemon on this runtime directory: "/slate-<hash>-".
std::string segment_prefix(const std::string& runtime_dir);

std::uint32_t hello_checksum(const Hello& hello);

// --- Daemon's side -------------------------------------------------------------------------------

/// The directory, the sessions folder and the FIFO, owned by this daemon; removed again on
/// destruction. For root every user can make sessions, but not list them (sticky, write only); for
/// others all is private. A lock file keeps a second daemon out: kUnavailable naming the pid of the
/// first.
class RendezvousPoint {
 public:
  static Result<RendezvousPoint> create(const std::string& runtime_dir);
  RendezvousPoint(RendezvousPoint&&) noexcept = default;
  RendezvousPoint& operator=(RendezvousPoint&&) noexcept = default;
  ~RendezvousPoint();

  int fd() const { return fifo_.get(); }  // readable when a Hello may have come; non-blocking
  const std::string& directory() const { return directory_; }
  /// Reads what is there and returns every whole, valid Hello; garbage in between is skipped.
  std::vector<Hello> receive();

 private:
  RendezvousPoint() = default;
  std::string directory_;
  UniqueFd lock_;
  UniqueFd fifo_;
  UniqueFd keep_open_;  // a writer of our own, so that the FIFO never reports end of file
  std::string pending_;
};

/// Finds Hellos in a byte stream that may hold anything. Exposed for the fuzz test.
class HelloScanner {
 public:
  /// Consumes from `bytes` all that cannot be the start of a Hello still arriving.
  static std::vector<Hello> scan(std::string& bytes);
};

/// The daemon's ends of a client's FIFOs, after checking that directory and FIFOs belong to one
/// user and are what they should be (no symbolic links, directory 0700).
struct SessionFifos {
  UniqueFd from_client;  // read end of to_daemon, non-blocking
  UniqueFd to_client;    // write end, non-blocking
  uid_t owner = 0;       // the authenticated user
};
Result<SessionFifos> open_session_fifos(const std::string& runtime_dir, const Hello& hello);
/// Removes the session's FIFOs and directory. Silent if they are gone.
void remove_session_directory(const std::string& runtime_dir, std::string_view name);

Result<void> send_welcome(int to_client, const Welcome& welcome);

// --- Client's side -------------------------------------------------------------------------------

struct Connection {
  UniqueFd to_daemon;    // write end, non-blocking
  UniqueFd from_daemon;  // read end of to_client, non-blocking
  Welcome welcome;
};
/// How the scheduler should treat the session, if the daemon grants it; none: as configured.
struct Wishes {
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
};
/// Makes the session directory, says Hello, waits for Welcome, opens to_daemon, removes the
/// directory again. kInitialization when no daemon listens there, the runtime directory is another
/// user's than root's and this one's, or no answer comes within `timeout`; the refusal's own code
/// and message when it refuses.
Result<Connection> connect_to_daemon(const std::string& runtime_dir, HelloKind kind,
                                     std::chrono::milliseconds timeout, const Wishes& wishes = {});

}  // namespace slate::ipc
