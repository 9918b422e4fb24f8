#include "daemon/supervisor/engine_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/spawn.h"
#include "daemon/options.h"

namespace slate::daemon {
namespace {

constexpr int kControlFd = 3;

/// Of an engine that said nothing: the fault of a kernel is in its last words.
Error describe_end(int status) {
  if (WIFEXITED(status)) {
    return {ErrorCode::kUnavailable,
            fmt::format("the engine ended with status {}", WEXITSTATUS(status))};
  }
  const int number = WTERMSIG(status);
  return {ErrorCode::kUnavailable,
          fmt::format("the engine was ended by signal {} ({})", number, sigabbrev_np(number))};
}

}  // namespace

Result<EngineProcess> EngineProcess::start(const std::string& program, const Config& config) {
  auto ends = EngineLink::make_pair();
  if (!ends) return std::unexpected(ends.error());
  std::vector<std::string> words = {"slated"};
  for (std::string& word : engine_arguments(config, kControlFd, getpid())) {
    words.push_back(std::move(word));
  }
  Spawn spawn;
  posix_spawn_file_actions_adddup2(spawn.files(), ends->second.get(), kControlFd);
  const auto started = spawn.start(program, words);
  if (!started) return std::unexpected(started.error());
  const pid_t pid = *started;
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
      told_to_stop(other.told_to_stop),
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
