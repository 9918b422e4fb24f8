// Rendezvous: where the runtime directory is, how a client introduces itself, and how the daemon
// finds and checks the session directory that a client made. Used once for each session, by both
// sides. What is said afterwards is channel.h. Thread: any; one object, one thread at a time.
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

/// Returns `explicit_dir` if it is not empty, else $SLATE_RUNTIME_DIR, else /run/slate if it has a
/// daemon's FIFO, else $XDG_RUNTIME_DIR/slate, else /tmp/slate-<uid>. Does not create it.
std::string runtime_directory(std::string_view explicit_dir = {});

std::string rendezvous_path(const std::string& runtime_dir);  // <dir>/slated.fifo
std::string sessions_path(const std::string& runtime_dir);    // <dir>/sessions

/// Prefix of the shared-memory names of the daemon on this directory: "/slate-<hash>-".
std::string segment_prefix(const std::string& runtime_dir);

/// FNV-1a of all fields behind the checksum.
std::uint32_t hello_checksum(const Hello& hello);

// --- Daemon's side -------------------------------------------------------------------------------

/// The runtime directory, its sessions folder and the FIFO, owned by this daemon and removed on
/// destruction. Under root every user can make sessions but not list them (sticky, write only).
/// Under other users all is private. A lock file keeps a second daemon out.
class RendezvousPoint {
 public:
  /// Errors: kUnavailable naming the pid of a daemon that is there already; kIo.
  static Result<RendezvousPoint> create(const std::string& runtime_dir);
  RendezvousPoint(RendezvousPoint&&) noexcept = default;
  RendezvousPoint& operator=(RendezvousPoint&&) noexcept = default;
  ~RendezvousPoint();

  int fd() const { return fifo_.get(); }  // non-blocking; readable when a Hello may have come
  const std::string& directory() const { return directory_; }
  /// Reads what is there and returns every whole, valid Hello. Skips garbage in between.
  std::vector<Hello> receive();

 private:
  RendezvousPoint() = default;
  std::string directory_;
  UniqueFd lock_;
  UniqueFd fifo_;
  UniqueFd keep_open_;  // a writer of the daemon's own, so that the FIFO never reports end of file
  /// Bytes of a Hello that has not come whole yet.
  std::string pending_;
};

/// Finds Hellos in a byte stream that may hold anything. Public for the fuzz test.
class HelloScanner {
 public:
  /// Takes from `bytes` all that cannot be the start of a Hello still arriving.
  static std::vector<Hello> scan(std::string& bytes);
};

/// The daemon's ends of a client's FIFOs, checked: directory and FIFOs belong to one user, no
/// symbolic links, directory 0700.
struct SessionFifos {
  UniqueFd from_client;  // read end of to_daemon, non-blocking
  UniqueFd to_client;    // write end, non-blocking
  uid_t owner = 0;       // the authenticated user
};
/// Opens and checks the FIFOs of the session that `hello` names.
Result<SessionFifos> open_session_fifos(const std::string& runtime_dir, const Hello& hello);
/// Removes the session's FIFOs and directory. Ignores missing ones.
void remove_session_directory(const std::string& runtime_dir, std::string_view name);

/// Sends the answer to a Hello. Never waits.
Result<void> send_welcome(int to_client, const Welcome& welcome);

// --- Client's side -------------------------------------------------------------------------------

/// The client's ends of its FIFOs, and the daemon's answer.
struct Connection {
  UniqueFd to_daemon;    // write end, non-blocking
  UniqueFd from_daemon;  // read end of to_client, non-blocking
  Welcome welcome;
};
/// What a program wants of the scheduler, if the daemon grants it; empty: as configured.
struct Wishes {
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
};
/// Makes the session directory, sends Hello, waits for Welcome, opens to_daemon and removes the
/// directory. Waits up to `timeout`. Errors:
/// - kInitialization: no daemon listens, no answer came in time, or the runtime directory belongs
///   to neither root nor this user;
/// - the daemon's own code and message when it refuses.
Result<Connection> connect_to_daemon(const std::string& runtime_dir, HelloKind kind,
                                     std::chrono::milliseconds timeout, const Wishes& wishes = {});

}  // namespace slate::ipc
