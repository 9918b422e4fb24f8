#include "device/cuda/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "base/spawn.h"
#include "base/unique_fd.h"

namespace slate::cuda {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kPrefix = "slate-ptxas-";
constexpr std::time_t kLeftAfter = 3600;  // seconds
constexpr std::size_t kMostWords = 8192;
constexpr rlim_t kMostFileBytes = rlim_t{1} << 30;
constexpr rlim_t kMostMemoryBytes = rlim_t{8} << 30;
constexpr rlim_t kMostFiles = 64;

/// A child that has been started; killed with its group and reaped with the object.
class Child {
 public:
  explicit Child(pid_t pid)
      : pid_(pid), exit_fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Child() {
    if (pid_ != 0) reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// What holds even if this process is killed meanwhile. Not being allowed to is no failure.
  void limit(std::chrono::milliseconds cpu) const {
    const auto seconds = static_cast<rlim_t>(std::chrono::ceil<std::chrono::seconds>(cpu).count());
    const std::pair<__rlimit_resource, rlimit> limits[] = {
        {RLIMIT_CPU, {seconds, seconds + 1}},
        {RLIMIT_FSIZE, {kMostFileBytes, kMostFileBytes}},
        {RLIMIT_AS, {kMostMemoryBytes, kMostMemoryBytes}},
        {RLIMIT_NOFILE, {kMostFiles, kMostFiles}},
        {RLIMIT_CORE, {0, 0}}};
    for (const auto& [which, most] : limits) std::ignore = ::prlimit(pid_, which, &most, nullptr);
    // Where memory is short, it goes before this process does.
    const std::string score = fmt::format("/proc/{}/oom_score_adj", pid_);
    if (const UniqueFd file(::open(score.c_str(), O_WRONLY | O_CLOEXEC)); file)
      std::ignore = ::write(file.get(), "1000", 4);
  }

  /// Whether it has ended by itself before `deadline`.
  Result<bool> wait_until(Clock::time_point deadline) const {
    if (!exit_fd_) return fail_errno("pidfd_open");
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd poller{exit_fd_.get(), POLLIN, 0};
      const int ready =
          ::poll(&poller, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 1000)));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return fail_errno("waiting for a child process");
      if (ready == 0 && Clock::now() >= deadline) return false;
    }
  }

  /// Not reaped yet, its number is still its own: so its group can be ended safely first.
  int reap() {
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;  // 0 once reaped
  UniqueFd exit_fd_;
};

}  // namespace

Result<WorkDirectory> WorkDirectory::make() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) return fail_errno("the temporary directory", error.value());
  std::string name = place / (std::string(kPrefix) + "XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) return fail_errno(name);
  return WorkDirectory(name);
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void WorkDirectory::remove_leftovers() {
  std::error_code ignored;
  const fs::path place = fs::temp_directory_path(ignored);
  for (const auto& each : fs::directory_iterator(place, ignored)) {
    if (!each.path().filename().string().starts_with(kPrefix)) continue;
    struct stat found;
    if (::lstat(each.path().c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) continue;
    if (found.st_uid != ::geteuid()) continue;
    if (::time(nullptr) - found.st_mtime < kLeftAfter) continue;
    fs::remove_all(each.path(), ignored);
  }
}

Result<Ended> run_program(const std::string& program, std::span<const std::string> arguments,
                          const fs::path& words, std::chrono::milliseconds limit,
                          std::chrono::milliseconds most_cpu) {
  std::vector<std::string> all = {program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Spawn spawn;
  // Empty input, words to a file, nothing else open.
  posix_spawn_file_actions_addopen(spawn.files(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(spawn.files(), 1, words.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(spawn.files(), 1, 2);
  posix_spawn_file_actions_addclosefrom_np(spawn.files(), 3);
  spawn.in_own_group();
  const auto deadline = Clock::now() + limit;
  const auto pid = spawn.start(program, all);
  if (!pid) return std::unexpected(pid.error());
  Child child(*pid);
  child.limit(most_cpu);
  const auto ended = child.wait_until(deadline);
  if (!ended) return std::unexpected(ended.error());
  const int status = child.reap();
  if (!*ended) {
    return fail(ErrorCode::kIo, fmt::format("{} was ended: it took more than {} s", program,
                                            std::chrono::duration<double>(limit).count()));
  }
  auto said = read_file(words, kMostWords);
  if (!said) return std::unexpected(std::move(said.error()));
  return Ended{.status = status, .words = std::move(*said)};
}

Result<std::string> read_file(const fs::path& path, std::size_t most_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat found;
  if (!file || ::fstat(file.get(), &found) != 0) return fail_errno(path.string());
  if (!S_ISREG(found.st_mode)) return fail(ErrorCode::kIo, path.string() + " is no file");
  std::string text(std::min(static_cast<std::size_t>(found.st_size), most_bytes), '\0');
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + at, text.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(path.string());
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  text.resize(at);
  return text;
}

}  // namespace slate::cuda
