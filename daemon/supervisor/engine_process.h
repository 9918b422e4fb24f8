// EngineProcess: one engine as a child process: its pid, its end, and the link to it. The
// destructor kills and reaps it. Supervisor thread only.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/device_info.h"
#include "daemon/config.h"
#include "daemon/engine_link.h"
#include "daemon/supervisor/handover.h"
#include "daemon/supervisor/heartbeat.h"

namespace slate::daemon {

class EngineProcess {
 public:
  /// Starts `program` as an engine of `config`. `flags`: of kConfigure. The engine dies with the
  /// calling thread. Requires: that thread lives as long as the supervisor.
  static Result<EngineProcess> start(const std::string& program, const Config& config,
                                     std::uint32_t flags = 0);
  /// An engine that an older slated has left, with hand_over().
  static EngineProcess take_over(const nlohmann::json& state, const Config& config);
  nlohmann::json hand_over(Handover& handover) const;
  EngineProcess(EngineProcess&& other) noexcept;
  EngineProcess& operator=(EngineProcess&&) = delete;
  ~EngineProcess();

  pid_t pid() const { return pid_; }
  int exit_fd() const { return exit_fd_.get(); }  // readable once it has ended
  const EngineLink& link() const { return link_; }
  /// How the process ended, in words and as its sessions' error; nullopt while it lives. Reaps it.
  std::optional<Error> ended();
  void kill();
  /// Asks the engine to end, once. One whose link is full is asked by the next call.
  void tell_stop(const std::string& reason);
  /// Ends an engine that hangs, so that it leaves a core dump where the system keeps those.
  void abort();

  std::uint64_t serial = 0;  // number of its own among all engines of the supervisor, from 1 on
  Heartbeat heartbeat;
  bool ready = false;
  DeviceInfo device{};              // the device, once `ready`
  std::uint64_t free_memory = 0;    // bytes free on the device when it was ready
  std::uint64_t own_bytes = 0;      // as Device::own_bytes()
  std::optional<Error> last_words;  // the error that the engine reported before it ended
  std::uint64_t culprit = 0;        // the session that it named as the likely cause; 0: none
  bool is_frozen = false;     // whether it touches no session any more, though its process is there
  bool start_failed = false;  // whether last_words came as kStartFailed
  bool told_to_stop = false;
  std::set<std::uint32_t> users;  // whose sessions it has had

 private:
  EngineProcess(pid_t pid, UniqueFd exit_fd, EngineLink link, Clock::duration patience)
      : heartbeat(patience), pid_(pid), exit_fd_(std::move(exit_fd)), link_(std::move(link)) {}

  pid_t pid_ = 0;  // 0 once reaped
  UniqueFd exit_fd_;
  EngineLink link_;
};

}  // namespace slate::daemon
