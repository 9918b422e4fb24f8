#include "daemon/supervisor/engine_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "daemon/options.h"

namespace slate::daemon {
namespace {

constexpr int kControlFd = 3;

/// posix_spawn's two objects, with the child's descriptors and signals set.
class SpawnSettings {
 public:
  explicit SpawnSettings(int control_end) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, control_end, kControlFd);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Error describe_end(int status) {
  if (WIFEXITED(status)) {
    return {ErrorCode::kUnavailable,
            fmt::format("the engine ended with status {}", WEXITSTATUS(status))};
  }
  const int number = WTERMSIG(status);
  const bool crashed = number == SIGSEGV || number == SIGBUS || number == SIGABRT ||
                       number == SIGILL || number == SIGFPE;
  return {crashed ? ErrorCode::kLaunchFailed : ErrorCode::kUnavailable,
          fmt::format("the engine was ended by signal {} ({})", number, sigabbrev_np(number))};
}

}  // namespace

Result<EngineProcess> EngineProcess::start(const std::string& program, const Config& config) {
  auto ends = EngineLink::make_pair();
  if (!ends) return std::unexpected(ends.error());
  std::vector<std::string> arguments = engine_arguments(config, kControlFd, getpid());
  std::string name = "slated";
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const SpawnSettings settings(ends->second.get());
  pid_t pid = 0;
  const int status = posix_spawn(&pid, program.c_str(), &settings.actions_, &settings.attributes_,
                                 argv.data(), environ);
  if (status != 0) return fail_errno("starting " + program, status);
  UniqueFd exit_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!exit_fd) {
    const auto error = fail_errno("pidfd_open");
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return error;
  }
  return EngineProcess(pid, std::move(exit_fd), EngineLink(std::move(ends->first)));
}

EngineProcess::EngineProcess(EngineProcess&& other) noexcept
    : ready(other.ready),
      device(other.device),
      last_words(std::move(other.last_words)),
      start_failed(other.start_failed),
      pid_(std::exchange(other.pid_, 0)),
      exit_fd_(std::move(other.exit_fd_)),
      link_(std::move(other.link_)) {}

EngineProcess::~EngineProcess() {
  if (pid_ == 0) return;
  kill();
  waitpid(pid_, nullptr, 0);
}

std::optional<Error> EngineProcess::ended() {
  int status = 0;
  if (pid_ == 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = 0;
  return last_words ? *last_words : describe_end(status);
}

void EngineProcess::kill() {
  if (pid_ != 0) ::kill(pid_, SIGKILL);
}

}  // namespace slate::daemon
