#include "daemon/supervisor/engine_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/spawn.h"

namespace slate::daemon {
namespace {

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

Clock::duration patience_of(const Config& config) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(config.engine_timeout_seconds));
}

}  // namespace

Result<EngineProcess> EngineProcess::start(const std::string& program, const Config& config,
                                           std::uint32_t flags) {
  const std::string text = config_text(config);
  if (text.size() > kMaxLinkText)
    return fail(ErrorCode::kLimit, "the configuration has too much text for an engine");
  auto ends = EngineLink::make_pair();
  if (!ends) return std::unexpected(ends.error());
  EngineLink link(std::move(ends->first));
  // It is there before the engine is, which reads it first.
  const auto told = link.try_send(
      {.type = LinkType::kConfigure, .pid = static_cast<std::uint32_t>(getpid()), .flags = flags},
      text);
  if (!told) return std::unexpected(told.error());
  const std::vector<std::string> words = {"slated", std::string(kEngineArgument)};
  Spawn spawn;
  posix_spawn_file_actions_adddup2(spawn.files(), ends->second.get(), kEngineLinkFd);
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
  return EngineProcess(pid, std::move(exit_fd), std::move(link), patience_of(config));
}

nlohmann::json EngineProcess::hand_over(Handover& handover) const {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&device);
  return {{"pid", pid_},
          {"serial", serial},
          {"ready", ready},
          {"free_memory", free_memory},
          {"own_bytes", own_bytes},
          {"told_to_stop", told_to_stop},
          {"users", users},
          {"device", std::vector<std::uint8_t>(bytes, bytes + sizeof(device))},
          {"exit", handover.pass(exit_fd_.get())},
          {"link", handover.pass(link_.fd())}};
}

EngineProcess EngineProcess::take_over(const nlohmann::json& state, const Config& config) {
  EngineProcess engine(state.at("pid").get<pid_t>(), Handover::take(state.at("exit")),
                       EngineLink(Handover::take(state.at("link"))), patience_of(config));
  engine.serial = state.at("serial").get<std::uint64_t>();
  engine.ready = state.at("ready").get<bool>();
  engine.free_memory = state.at("free_memory").get<std::uint64_t>();
  engine.own_bytes = state.value("own_bytes", std::uint64_t{0});
  engine.told_to_stop = state.at("told_to_stop").get<bool>();
  engine.users = state.value("users", engine.users);
  const auto bytes = state.at("device").get<std::vector<std::uint8_t>>();
  std::memcpy(&engine.device, bytes.data(), std::min(bytes.size(), sizeof(engine.device)));
  engine.heartbeat.heard(Clock::now());
  return engine;
}

EngineProcess::EngineProcess(EngineProcess&& other) noexcept
    : serial(other.serial),
      heartbeat(other.heartbeat),
      ready(other.ready),
      device(other.device),
      free_memory(other.free_memory),
      own_bytes(other.own_bytes),
      last_words(std::move(other.last_words)),
      culprit(other.culprit),
      is_frozen(other.is_frozen),
      start_failed(other.start_failed),
      told_to_stop(other.told_to_stop),
      users(std::move(other.users)),
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

void EngineProcess::abort() {
  if (pid_ == 0) return;
  // One that was stopped takes the signal when it goes on.
  ::kill(pid_, SIGABRT);
  ::kill(pid_, SIGCONT);
}

void EngineProcess::kill() {
  if (pid_ != 0) ::kill(pid_, SIGKILL);
}

void EngineProcess::tell_stop(const std::string& reason) {
  if (told_to_stop) return;
  told_to_stop = link_.try_send({.type = LinkType::kStop}, reason).has_value();
}

}  // namespace slate::daemon
