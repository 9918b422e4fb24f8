#include "ipc/meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/clock.h"
#include "ipc/packets.h"

namespace slate::ipc {
namespace {

constexpr const char* kSystemDirectory = "/run/slate";
constexpr int kQueue = 4096;  // visitors that wait to be accepted; the kernel may allow fewer

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("making " + path);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail_errno(path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return fail(ErrorCode::kPermission, path + " is not a directory of this user");
  // mkdir applies the umask, and the directory may be older than this daemon.
  if (::chmod(path.c_str(), mode) != 0) return fail_errno("setting the mode of " + path);
  return {};
}

std::string lock_path(const std::string& runtime_dir) {
  return runtime_dir + "/slated.lock";
}

/// The lock lives as long as the descriptor, so a killed daemon never blocks the next one.
Result<UniqueFd> take_lock(const std::string& path) {
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno("opening " + path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> text{};
    const ssize_t n = ::read(lock.get(), text.data(), text.size() - 1);
    return fail(ErrorCode::kUnavailable,
                "another slated (pid " +
                    std::string(text.data(), n > 0 ? static_cast<size_t>(n) : 0) +
                    ") serves this runtime directory");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) != 0 || ::write(lock.get(), pid.data(), pid.size()) < 0)
    return fail_errno("writing " + path);
  return lock;
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return fail(ErrorCode::kInvalidValue, path + " is too long for the path of a socket");
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

UniqueFd make_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

Result<UniqueFd> listen_at(const std::string& path, mode_t mode) {
  const auto address = address_of(path);
  if (!address) return std::unexpected(address.error());
  UniqueFd socket = make_socket();
  if (!socket) return fail_errno("making a socket");
  ::unlink(path.c_str());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 ||
      ::chmod(path.c_str(), mode) != 0 || ::listen(socket.get(), kQueue) != 0)
    return fail_errno("listening at " + path);
  return socket;
}

Result<void> check_given(int socket) {
  int type = 0, listens = 0, domain = 0;
  socklen_t size = sizeof(int);
  if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || type != SOCK_SEQPACKET ||
      listens == 0 || domain != AF_UNIX) {
    return fail(ErrorCode::kInvalidValue,
                "the service manager's socket is none of Unix, for packets, that listens");
  }
  return {};
}

struct Fifo {
  UniqueFd reader, writer;
};

/// Named pipes need a name until both ends are open. The folder is the daemon's alone.
Result<Fifo> make_fifo(const std::string& folder) {
  static std::atomic<std::uint64_t> next{1};
  const std::string path =
      folder + "/fifo-" + std::to_string(::getpid()) + "-" + std::to_string(next.fetch_add(1));
  if (::mkfifo(path.c_str(), 0600) != 0) return fail_errno("making " + path);
  constexpr int kFlags = O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
  Fifo fifo;
  fifo.reader.reset(::open(path.c_str(), O_RDONLY | kFlags));
  fifo.writer.reset(::open(path.c_str(), O_WRONLY | kFlags));
  const int error = errno;
  ::unlink(path.c_str());
  if (!fifo.reader || !fifo.writer) return fail_errno("opening " + path, error);
  return fifo;
}

/// The supplementary groups of the process behind a socket.
std::vector<gid_t> groups_of(int socket) {
  std::vector<gid_t> groups(64);
  while (true) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const bool done = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0;
    const bool larger = !done && errno == ERANGE && bytes / sizeof(gid_t) > groups.size();
    groups.resize(done || larger ? bytes / sizeof(gid_t) : 0);
    if (!larger) return groups;
  }
}

}  // namespace

std::string runtime_directory(std::string_view explicit_dir) {
  if (!explicit_dir.empty()) return std::string(explicit_dir);
  // NOLINTBEGIN(concurrency-mt-unsafe): read-only use of the environment
  if (const char* dir = std::getenv("SLATE_RUNTIME_DIR"); dir && *dir) return dir;
  if (::access(meeting_path(kSystemDirectory).c_str(), W_OK) == 0) return kSystemDirectory;
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir && *dir)
    return std::string(dir) + "/slate";
  // NOLINTEND(concurrency-mt-unsafe)
  return "/tmp/slate-" + std::to_string(::getuid());
}

std::string meeting_path(const std::string& runtime_dir) {
  return runtime_dir + "/slated.sock";
}

// --- Daemon's side -------------------------------------------------------------------------------

Result<MeetingPoint> MeetingPoint::create(const std::string& runtime_dir, Guests guests,
                                          UniqueFd given) {
  const bool all = guests == Guests::kEverybody;
  if (auto ok = make_directory(runtime_dir, all ? 0755 : 0700); !ok)
    return std::unexpected(ok.error());
  auto lock = take_lock(lock_path(runtime_dir));
  if (!lock) return std::unexpected(lock.error());
  MeetingPoint point;
  if (given) {
    if (auto ok = check_given(given.get()); !ok) return std::unexpected(ok.error());
    point.given_ = true;
    point.socket_ = std::move(given);
  } else {
    auto made = listen_at(meeting_path(runtime_dir), all ? 0666 : 0600);
    if (!made) return std::unexpected(made.error());
    point.socket_ = std::move(*made);
  }
  if (::fcntl(point.socket_.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno("the socket");
  point.directory_ = runtime_dir;
  point.lock_ = std::move(*lock);
  return point;
}

MeetingPoint MeetingPoint::again(std::string directory, UniqueFd socket, UniqueFd lock,
                                 bool given) {
  MeetingPoint point;
  point.directory_ = std::move(directory);
  point.socket_ = std::move(socket);
  point.lock_ = std::move(lock);
  point.given_ = given;
  return point;
}

MeetingPoint::~MeetingPoint() {
  if (!socket_) return;  // moved from
  if (!given_) ::unlink(meeting_path(directory_).c_str());
  ::unlink(lock_path(directory_).c_str());
  ::rmdir(directory_.c_str());  // stays if something else is in it
}

Result<std::optional<Visitor>> MeetingPoint::accept() {
  while (true) {
    UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::nullopt;
      return fail(ErrorCode::kLimit, "no descriptor is left for a visitor");
    }
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) continue;
    std::vector<gid_t> groups = groups_of(socket.get());
    groups.push_back(peer.gid);
    return Visitor{std::move(socket), peer.uid, std::move(groups), peer.pid};
  }
}

Result<std::optional<Hello>> receive_hello(const Visitor& visitor) {
  Hello hello;
  const iovec piece{&hello, sizeof(hello)};
  const auto packet = receive_packet(visitor.socket.get(), {&piece, 1});
  if (!packet && packet.error().code == ErrorCode::kUnavailable)
    return std::unexpected(packet.error());
  if (packet && !*packet) return std::nullopt;
  // Another version's may be longer or shorter. What stands in front is the same in all.
  const std::size_t bytes = packet ? (*packet)->bytes : sizeof(hello);
  if (bytes < kSameInAllVersions || hello.magic != kMagic)
    return fail(ErrorCode::kProtocol, "what came is no Hello of slate's");
  if (hello.protocol != kProtocolVersion) {
    return fail(ErrorCode::kProtocol,
                "slated speaks protocol " + std::to_string(kProtocolVersion) +
                    ", this program's libslate (" +
                    std::string(hello.build, ::strnlen(hello.build, sizeof(hello.build))) + ") " +
                    std::to_string(hello.protocol));
  }
  if (!packet || bytes != sizeof(hello))
    return fail(ErrorCode::kProtocol, "a Hello of the wrong length");
  return hello;
}

Result<NewSession> NewSession::make(const std::string& folder, const DeviceInfo& device,
                                    std::uint64_t memory_limit) {
  auto to_daemon = make_fifo(folder);
  if (!to_daemon) return std::unexpected(to_daemon.error());
  auto to_client = make_fifo(folder);
  if (!to_client) return std::unexpected(to_client.error());
  auto segment = Segment::create(device, memory_limit);
  if (!segment) return std::unexpected(segment.error());
  return NewSession{{std::move(to_daemon->reader), std::move(to_client->writer), {}},
                    std::move(*segment),
                    std::move(to_daemon->writer),
                    std::move(to_client->reader)};
}

Result<void> send_welcome(int socket, const Welcome& welcome, const NewSession* session) {
  const iovec piece{const_cast<Welcome*>(&welcome), sizeof(welcome)};
  if (session == nullptr) return send_packet(socket, {&piece, 1}, {}, MSG_DONTWAIT);
  const std::array<int, 3> fds{session->to_daemon.get(), session->from_daemon.get(),
                               session->segment.fd()};
  return send_packet(socket, {&piece, 1}, fds, MSG_DONTWAIT);
}

Result<void> send_memory(int socket, std::uint64_t id, int memory) {
  const iovec piece{&id, sizeof(id)};
  return send_packet(socket, {&piece, 1}, {&memory, 1}, MSG_DONTWAIT);
}

// --- Client's side -------------------------------------------------------------------------------

namespace {

std::string how_to_start(const std::string& runtime_dir) {
  return "no slated listens on " + runtime_dir + "; start one with `slated --runtime-dir " +
         runtime_dir + "` (or set SLATE_RUNTIME_DIR to the directory of the one that runs)";
}

bool is_trusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid();
}

/// What this process sees as the owner where the owner has no number in its user namespace, as the
/// machine's root in a container; nothing: all users have one.
std::optional<uid_t> nobodys_number() {
  std::ifstream map("/proc/self/uid_map");
  uid_t inside = 0, outside = 0, count = 0, number = 0;
  if (!(std::ifstream("/proc/sys/kernel/overflowuid") >> number)) return std::nullopt;
  while (map >> inside >> outside >> count) {
    if (number - inside < count) return std::nullopt;
  }
  return number;
}

/// Whether only root can have made what is in the folder. A container's system may be owned by a
/// root who has no number there: who made the container has chosen what lies in it.
bool is_roots(const struct stat& folder) {
  return (folder.st_uid == 0 || folder.st_uid == nobodys_number()) &&
         (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Where no daemon listens yet, any user may have made the directory, to listen himself. Not where
/// only root can make one.
Result<void> check_owners(const std::string& runtime_dir) {
  struct stat link {
  }, directory{}, parent{};
  if (::lstat(runtime_dir.c_str(), &link) != 0 || ::stat(runtime_dir.c_str(), &directory) != 0 ||
      ::stat((runtime_dir + "/..").c_str(), &parent) != 0)
    return fail(ErrorCode::kInitialization, how_to_start(runtime_dir));
  const bool roots = is_roots(parent);
  if (is_trusted(link.st_uid) && (is_trusted(directory.st_uid) || roots)) return {};
  if (roots && S_ISDIR(link.st_mode)) return {};
  return fail(ErrorCode::kInitialization,
              runtime_dir + " is not used: it belongs to user " +
                  std::to_string(is_trusted(link.st_uid) ? directory.st_uid : link.st_uid) +
                  ", who is neither root nor the one that this program runs as");
}

std::string program_name() {
  std::array<char, 512> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string name(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return name.substr(name.rfind('/') + 1);
}

Hello hello_of(HelloKind kind, const Wishes& wishes) {
  Hello hello;
  hello.kind = kind;
  hello.weight = wishes.weight.value_or(0);
  hello.priority = wishes.priority.value_or(0);
  hello.memory = wishes.memory.value_or(0);
  hello.wishes = (wishes.weight ? kHasWeight : 0) | (wishes.priority ? kHasPriority : 0) |
                 (wishes.memory ? kHasMemoryLimit : 0);
  std::strncpy(hello.build, SLATE_VERSION, sizeof(hello.build) - 1);
  std::strncpy(hello.program, program_name().c_str(), sizeof(hello.program) - 1);
  return hello;
}

/// A wait for the daemon that has begun.
class Wait {
 public:
  explicit Wait(const Patience& patience)
      : patience_(patience),
        end_ns_(now_ns() + patience.timeout.count() * 1'000'000),
        tell_ns_(now_ns() + patience.tell_after.count() * 1'000'000) {}

  bool is_over() const { return until_ms(end_ns_) == 0; }
  /// Milliseconds until the end, or until the program is told. It is told here.
  int left_ms() {
    if (patience_.tell && !has_told_) {
      if (const int left = until_ms(tell_ns_); left > 0) return std::min(left, until_ms(end_ns_));
      has_told_ = true;
      patience_.tell();
    }
    return until_ms(end_ns_);
  }

 private:
  /// 0 once it has passed.
  static int until_ms(std::int64_t moment_ns) {
    return static_cast<int>(
        std::clamp<std::int64_t>((moment_ns - now_ns()) / 1'000'000, 0, 60'000));
  }

  const Patience& patience_;
  const std::int64_t end_ns_, tell_ns_;
  bool has_told_ = false;
};

/// The socket, connected. Nothing: the daemon's queue is full.
Result<std::optional<UniqueFd>> try_connect(const std::string& runtime_dir, Wait& wait) {
  const auto address = address_of(meeting_path(runtime_dir));
  if (!address) return std::unexpected(address.error());
  UniqueFd socket = make_socket();
  if (!socket) return fail_errno("making a socket");
  // The kernel lets those who wait for room in the queue in by turns.
  const int left = std::max(wait.left_ms(), 1);
  const timeval limit{left / 1000, left % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0)
    return socket;
  if (errno == EAGAIN || errno == EINTR) return std::nullopt;
  if (errno == EACCES || errno == EPERM)
    return fail(ErrorCode::kInitialization,
                "the slated on " + runtime_dir + " does not serve this user");
  return fail(ErrorCode::kInitialization, how_to_start(runtime_dir));
}

/// Waits for the answer. Nothing: none came in time, or the daemon hung up without one.
Result<std::optional<Connection>> await_welcome(UniqueFd socket, Wait& wait) {
  Connection connection;
  const iovec piece{&connection.welcome, sizeof(connection.welcome)};
  while (true) {
    auto packet = receive_packet(socket.get(), {&piece, 1});
    if (!packet && packet.error().code == ErrorCode::kUnavailable) return std::nullopt;
    if (!packet) return std::unexpected(packet.error());
    if (*packet) {
      Welcome& welcome = connection.welcome;
      if ((*packet)->bytes != sizeof(welcome) || welcome.magic != kMagic)
        return fail(ErrorCode::kProtocol, "slated answered with something that is not a Welcome");
      welcome.message[sizeof(welcome.message) - 1] = '\0';
      auto& fds = (*packet)->fds;
      if (fds.size() == 3) {
        connection.to_daemon = std::move(fds[0]);
        connection.from_daemon = std::move(fds[1]);
        connection.segment = std::move(fds[2]);
      }
      connection.socket = std::move(socket);
      return connection;
    }
    if (wait.is_over()) return std::nullopt;
    pollfd poller{socket.get(), POLLIN, 0};
    ::poll(&poller, 1, wait.left_ms());
  }
}

/// One try. Nothing: it is worth another one.
Result<std::optional<Connection>> try_to_meet(const std::string& runtime_dir, const Hello& hello,
                                              Wait& wait) {
  auto socket = try_connect(runtime_dir, wait);
  if (!socket) return std::unexpected(socket.error());
  if (!*socket) return std::nullopt;
  const iovec piece{const_cast<Hello*>(&hello), sizeof(hello)};
  if (!send_packet((*socket)->get(), {&piece, 1})) return std::nullopt;
  return await_welcome(std::move(**socket), wait);
}

}  // namespace

Result<Connection> connect_to_daemon(const std::string& runtime_dir, HelloKind kind,
                                     const Patience& patience, const Wishes& wishes) {
  constexpr int kFirstPauseMs = 5, kLastPauseMs = 500;
  if (auto ok = check_owners(runtime_dir); !ok) return std::unexpected(ok.error());
  const Hello hello = hello_of(kind, wishes);
  Wait wait(patience);
  std::string why = "it is silent, or has too many visitors";
  for (int pause = kFirstPauseMs;; pause = std::min(2 * pause, kLastPauseMs)) {
    auto met = try_to_meet(runtime_dir, hello, wait);
    if (!met) return std::unexpected(met.error());
    if (*met) {
      const Welcome& welcome = (*met)->welcome;
      if (welcome.status == 0) return std::move(**met);
      why = welcome.message;
      if (welcome.come_again == 0)
        return fail(static_cast<ErrorCode>(welcome.status), "slated refused: " + why);
    }
    if (wait.is_over()) {
      return fail(ErrorCode::kInitialization, "slated did not answer within " +
                                                  std::to_string(patience.timeout.count()) +
                                                  " ms: " + why);
    }
    ::poll(nullptr, 0, std::min(pause, wait.left_ms()));
  }
}

Result<UniqueFd> receive_memory(int socket, std::uint64_t id) {
  std::uint64_t sent = 0;
  const iovec piece{&sent, sizeof(sent)};
  std::optional<Packet> last;
  while (true) {
    auto packet = receive_packet(socket, {&piece, 1});
    if (!packet) return std::unexpected(packet.error());
    if (!*packet) break;
    last = std::move(**packet);
  }
  if (!last || last->bytes != sizeof(sent) || last->fds.size() != 1 || sent != id)
    return fail(ErrorCode::kProtocol, "slated did not send the memory that it promised");
  return std::move(last->fds[0]);
}

}  // namespace slate::ipc
