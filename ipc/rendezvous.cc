#include "ipc/rendezvous.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

namespace slate::ipc {
namespace {

static_assert(sizeof(Hello) <= PIPE_BUF);
static_assert(sizeof(Welcome) <= PIPE_BUF);

constexpr const char* kSystemDirectory = "/run/slate";

std::uint32_t fnv1a(const void* data, std::size_t bytes, std::uint32_t hash = 2166136261u) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 16777619u;
  return hash;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

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

std::string lock_path(const std::string& runtime_dir) {
  return runtime_dir + "/slated.lock";
}

/// What earlier clients of a killed daemon left.
void remove_all_sessions(const std::string& runtime_dir);

}  // namespace

std::string runtime_directory(std::string_view explicit_dir) {
  if (!explicit_dir.empty()) return std::string(explicit_dir);
  // NOLINTBEGIN(concurrency-mt-unsafe): read-only use of the environment
  if (const char* dir = std::getenv("SLATE_RUNTIME_DIR"); dir && *dir) return dir;
  if (::access(rendezvous_path(kSystemDirectory).c_str(), W_OK) == 0) return kSystemDirectory;
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir && *dir)
    return std::string(dir) + "/slate";
  // NOLINTEND(concurrency-mt-unsafe)
  return "/tmp/slate-" + std::to_string(::getuid());
}

std::string rendezvous_path(const std::string& runtime_dir) {
  return runtime_dir + "/slated.fifo";
}
std::string sessions_path(const std::string& runtime_dir) {
  return runtime_dir + "/sessions";
}

std::string segment_prefix(const std::string& runtime_dir) {
  // Two spellings of one directory must agree, so that a new daemon finds what the old one left.
  char* real = ::realpath(runtime_dir.c_str(), nullptr);
  const std::string path = real ? real : runtime_dir;
  std::free(real);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "/slate-%08x-", fnv1a(path.data(), path.size()));
  return text.data();
}

std::uint32_t hello_checksum(const Hello& hello) {
  constexpr std::size_t start = offsetof(Hello, protocol);
  return fnv1a(reinterpret_cast<const char*>(&hello) + start, sizeof(Hello) - start);
}

std::vector<Hello> HelloScanner::scan(std::string& bytes) {
  std::vector<Hello> found;
  std::array<char, sizeof(kMagic)> magic{};
  std::memcpy(magic.data(), &kMagic, sizeof(kMagic));
  const std::string_view wanted(magic.data(), magic.size());
  std::size_t position = 0;
  while (true) {
    position = bytes.find(wanted, position);
    if (position == std::string::npos || bytes.size() - position < sizeof(Hello)) break;
    Hello hello;
    std::memcpy(&hello, bytes.data() + position, sizeof(Hello));
    if (hello.checksum == hello_checksum(hello)) {
      found.push_back(hello);
      position += sizeof(Hello);
    } else {
      ++position;
    }
  }
  // Keep a possible beginning: a whole magic still waiting for its body, or the last few bytes.
  const std::size_t keep_from = position != std::string::npos
                                    ? position
                                    : bytes.size() - std::min(bytes.size(), wanted.size() - 1);
  bytes.erase(0, keep_from);
  return found;
}

// --- Daemon's side -------------------------------------------------------------------------------

Result<RendezvousPoint> RendezvousPoint::create(const std::string& runtime_dir) {
  const bool for_everybody = ::geteuid() == 0;
  if (auto ok = make_directory(runtime_dir, for_everybody ? 0755 : 0700); !ok)
    return std::unexpected(ok.error());
  auto lock = take_lock(lock_path(runtime_dir));
  if (!lock) return std::unexpected(lock.error());
  remove_all_sessions(runtime_dir);
  // Any user makes directories there, but no user lists those of others: a program that knows a
  // name can answer to it.
  if (auto ok = make_directory(sessions_path(runtime_dir), for_everybody ? 01733 : 0700); !ok)
    return std::unexpected(ok.error());
  const std::string path = rendezvous_path(runtime_dir);
  ::unlink(path.c_str());
  const mode_t mode = for_everybody ? 0622 : 0600;
  if (::mkfifo(path.c_str(), mode) != 0 || ::chmod(path.c_str(), mode) != 0)
    return fail_errno("making " + path);
  RendezvousPoint point;
  point.directory_ = runtime_dir;
  point.lock_ = std::move(*lock);
  point.fifo_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!point.fifo_) return fail_errno("opening " + path);
  point.keep_open_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!point.keep_open_) return fail_errno("opening " + path);
  return point;
}

RendezvousPoint::~RendezvousPoint() {
  if (!fifo_) return;  // moved from
  ::unlink(rendezvous_path(directory_).c_str());
  remove_all_sessions(directory_);
  ::unlink(lock_path(directory_).c_str());
  ::rmdir(directory_.c_str());  // stays if the user keeps something else in it
}

std::vector<Hello> RendezvousPoint::receive() {
  std::array<char, 16 << 10> buffer;
  // Bounded, so that a program that writes without pause cannot keep the supervisor here.
  for (int i = 0; i < 16; ++i) {
    const ssize_t n = ::read(fifo_.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    pending_.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return HelloScanner::scan(pending_);
}

namespace {

Result<UniqueFd> open_fifo(int directory, const char* name, int flags, uid_t owner) {
  UniqueFd fd(::openat(directory, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(std::string("opening a session's ") + name);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(name);
  if (!S_ISFIFO(info.st_mode) || info.st_uid != owner)
    return fail(ErrorCode::kPermission, std::string(name) + " is not a FIFO of the session's user");
  return fd;
}

Result<UniqueFd> open_session_directory(const std::string& runtime_dir, std::string_view name) {
  const std::string path = sessions_path(runtime_dir) + "/" + std::string(name);
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return fail_errno("opening a session directory");
  return directory;
}

void remove_all_sessions(const std::string& runtime_dir) {
  const std::string path = sessions_path(runtime_dir);
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): own DIR
    if (is_plain_name(entry->d_name)) remove_session_directory(runtime_dir, entry->d_name);
  }
  ::closedir(directory);
  ::rmdir(path.c_str());
}

}  // namespace

Result<SessionFifos> open_session_fifos(const std::string& runtime_dir, const Hello& hello) {
  const std::string name(hello.directory, ::strnlen(hello.directory, sizeof(hello.directory)));
  if (!is_plain_name(name) || name.size() == sizeof(hello.directory))
    return fail(ErrorCode::kProtocol, "a Hello names no session directory");
  auto directory = open_session_directory(runtime_dir, name);
  if (!directory) return std::unexpected(directory.error());
  struct stat info {};
  if (::fstat(directory->get(), &info) != 0) return fail_errno("a session directory");
  if ((info.st_mode & 07777) != 0700)
    return fail(ErrorCode::kPermission, "a session directory is open to other users");
  SessionFifos fifos;
  fifos.owner = info.st_uid;
  auto from_client = open_fifo(directory->get(), "to_daemon", O_RDONLY, fifos.owner);
  if (!from_client) return std::unexpected(from_client.error());
  auto to_client = open_fifo(directory->get(), "to_client", O_WRONLY, fifos.owner);
  if (!to_client) return std::unexpected(to_client.error());
  fifos.from_client = std::move(*from_client);
  fifos.to_client = std::move(*to_client);
  return fifos;
}

void remove_session_directory(const std::string& runtime_dir, std::string_view name) {
  auto directory = open_session_directory(runtime_dir, name);
  if (!directory) return;
  ::unlinkat(directory->get(), "to_daemon", 0);
  ::unlinkat(directory->get(), "to_client", 0);
  ::rmdir((sessions_path(runtime_dir) + "/" + std::string(name)).c_str());
}

Result<void> send_welcome(int to_client, const Welcome& welcome) {
  // At most PIPE_BUF bytes into an empty pipe: whole or not at all.
  if (::write(to_client, &welcome, sizeof(welcome)) != static_cast<ssize_t>(sizeof(welcome)))
    return fail_errno("sending Welcome");
  return {};
}

// --- Client's side -------------------------------------------------------------------------------

namespace {

std::string how_to_start(const std::string& runtime_dir) {
  return "no slated listens on " + runtime_dir + "; start one with `slated --runtime-dir " +
         runtime_dir + "` (or set SLATE_RUNTIME_DIR to the directory of the one that runs)";
}

/// Where no daemon listens yet, any user may have made the directory, to listen itself.
Result<void> check_owners(const std::string& runtime_dir, const UniqueFd& rendezvous) {
  struct stat link {
  }, directory{}, fifo{};
  if (::lstat(runtime_dir.c_str(), &link) != 0 || ::stat(runtime_dir.c_str(), &directory) != 0 ||
      ::fstat(rendezvous.get(), &fifo) != 0)
    return fail_errno("looking at " + runtime_dir);
  for (const struct stat* each : {&link, &directory, &fifo}) {
    if (each->st_uid == 0 || each->st_uid == ::geteuid()) continue;
    return fail(ErrorCode::kInitialization,
                runtime_dir + " is not used: it belongs to user " + std::to_string(each->st_uid) +
                    ", who is neither root nor the one that this program runs as");
  }
  return {};
}

/// The session directory of a client while it connects; removed with its FIFOs at the end.
struct SessionDirectory {
  std::string runtime_dir;
  std::string name;
  std::string path;
  ~SessionDirectory() {
    if (!path.empty()) remove_session_directory(runtime_dir, name);
  }
};

Result<void> make_session_directory(const std::string& runtime_dir, SessionDirectory& made) {
  std::array<unsigned char, 8> random{};
  UniqueFd source(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (!source || ::read(source.get(), random.data(), random.size()) != 8)
    return fail_errno("reading /dev/urandom");
  std::string name = std::to_string(::getpid()) + "-";
  for (const unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  const std::string path = sessions_path(runtime_dir) + "/" + name;
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno("making " + path);
  made.runtime_dir = runtime_dir;
  made.name = name;
  made.path = path;
  for (const char* fifo : {"/to_daemon", "/to_client"}) {
    if (::mkfifo((path + fifo).c_str(), 0600) != 0) return fail_errno("making " + path + fifo);
  }
  return {};
}

std::string program_name() {
  std::array<char, 512> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string name(path.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return name.substr(name.rfind('/') + 1);
}

Result<Welcome> await_welcome(int fd, std::chrono::milliseconds timeout) {
  Welcome welcome;
  std::size_t have = 0;
  const std::int64_t deadline = now_ns() + timeout.count() * 1'000'000;
  while (have < sizeof(welcome)) {
    const std::int64_t left_ms = (deadline - now_ns()) / 1'000'000;
    if (left_ms <= 0)
      return fail(ErrorCode::kInitialization,
                  "slated did not answer within " + std::to_string(timeout.count()) + " ms");
    pollfd poller{fd, POLLIN, 0};
    ::poll(&poller, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 100)));
    const ssize_t n = ::read(fd, reinterpret_cast<char*>(&welcome) + have, sizeof(welcome) - have);
    if (n > 0) have += static_cast<std::size_t>(n);
    // End of file: before the daemon opened its end this is normal, so only time decides.
    if (n == 0) ::usleep(2000);
  }
  if (welcome.magic != kMagic)
    return fail(ErrorCode::kProtocol, "slated answered with something that is not a Welcome");
  welcome.segment[sizeof(welcome.segment) - 1] = '\0';
  welcome.message[sizeof(welcome.message) - 1] = '\0';
  return welcome;
}

Result<void> say_hello(const std::string& runtime_dir, HelloKind kind, const std::string& directory,
                       const Wishes& wishes) {
  Hello hello;
  hello.kind = kind;
  hello.weight = wishes.weight.value_or(0);
  hello.priority = wishes.priority.value_or(0);
  hello.wishes = (wishes.weight ? kHasWeight : 0) | (wishes.priority ? kHasPriority : 0);
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::strncpy(hello.build, SLATE_VERSION, sizeof(hello.build) - 1);
  std::strncpy(hello.program, program_name().c_str(), sizeof(hello.program) - 1);
  std::strncpy(hello.directory, directory.c_str(), sizeof(hello.directory) - 1);
  hello.checksum = hello_checksum(hello);
  UniqueFd fifo(
      ::open(rendezvous_path(runtime_dir).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fifo) return fail(ErrorCode::kInitialization, how_to_start(runtime_dir));
  if (::write(fifo.get(), &hello, sizeof(hello)) != static_cast<ssize_t>(sizeof(hello)))
    return fail_errno("writing to the rendezvous FIFO");
  return {};
}

}  // namespace

Result<Connection> connect_to_daemon(const std::string& runtime_dir, HelloKind kind,
                                     std::chrono::milliseconds timeout, const Wishes& wishes) {
  // Look first, so that without a daemon nothing is made and the answer comes at once.
  UniqueFd probe(::open(rendezvous_path(runtime_dir).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!probe) return fail(ErrorCode::kInitialization, how_to_start(runtime_dir));
  if (auto ok = check_owners(runtime_dir, probe); !ok) return std::unexpected(ok.error());
  SessionDirectory directory;
  if (auto ok = make_session_directory(runtime_dir, directory); !ok)
    return fail(ErrorCode::kInitialization, ok.error().message);
  Connection connection;
  connection.from_daemon.reset(
      ::open((directory.path + "/to_client").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!connection.from_daemon) return fail_errno("opening to_client");
  if (auto ok = say_hello(runtime_dir, kind, directory.name, wishes); !ok)
    return std::unexpected(ok.error());
  auto welcome = await_welcome(connection.from_daemon.get(), timeout);
  if (!welcome) return std::unexpected(welcome.error());
  connection.welcome = *welcome;
  if (welcome->status != 0)
    return fail(static_cast<ErrorCode>(welcome->status),
                std::string("slated refused: ") + welcome->message);
  connection.to_daemon.reset(
      ::open((directory.path + "/to_daemon").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!connection.to_daemon) return fail_errno("opening to_daemon");
  return connection;
}

}  // namespace slate::ipc
