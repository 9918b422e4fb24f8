// Supervisor: slated's first process. One thread and one loop serve visitors, the engine, new
// sessions and slatectl. It never touches CUDA, so that no fault can end it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/config.h"
#include "daemon/supervisor/blame.h"
#include "daemon/supervisor/control_desk.h"
#include "daemon/supervisor/engine_keeper.h"
#include "daemon/supervisor/reception.h"
#include "daemon/supervisor/registry.h"
#include "daemon/supervisor/service_manager.h"
#include "daemon/supervisor/settings_desk.h"
#include "daemon/supervisor/status.h"

namespace slate::daemon {

/// How the configuration is read again.
struct Reload {
  int fd = -1;  // readable when it is time to; eventfd or signalfd, of the caller
  std::function<std::optional<Config>()> read = {};  // none: the file is wrong; why was printed
};

class Supervisor {
 public:
  /// Opens the meeting point. `program`: the path of slated, for engines. `stop_fd` is readable
  /// when it is time to stop; the caller owns it.
  static Result<std::unique_ptr<Supervisor>> make(const Config& config, const std::string& program,
                                                  int stop_fd, Reload reload = {});
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Serves until it is told to stop, then tells the sessions and ends. The error: the device
  /// cannot exist. Requires: the calling thread lives as long as the daemon.
  Result<void> run();

  const std::string& runtime_dir() const { return reception_.directory(); }

 private:
  Supervisor(const Config& config, const std::string& program, int stop_fd, ServiceManager manager,
             ipc::MeetingPoint point, Reload reload);

  void serve_once();
  void reload();
  void engine_message(LinkMessage message);
  void engine_died(const Error& cause, std::uint64_t culprit);
  std::string refusal_of(std::uint32_t uid) const;
  void blame(std::uint64_t session, const std::string& what);
  void blame_user(std::uint32_t uid, const std::string& what);
  void stop();
  bool shows_all_to(std::uint32_t asker) const;
  std::string describe(const std::string& engine_report, std::uint32_t asker) const;

  const Config config_;
  const int stop_fd_;
  const Reload reload_;
  const Clock::time_point started_ = Clock::now();
  ServiceManager manager_;
  Reception reception_;
  UserRules rules_;
  ProgramStore programs_;
  Registry registry_;
  SettingsDesk settings_;
  ControlDesk desk_;
  EngineKeeper keeper_;
  Blame blame_;
  std::optional<DeviceInfo> device_;
  std::uint64_t past_launches_ = 0;
  std::uint64_t past_faults_ = 0;
  bool stopping_ = false;
};

/// Runs the daemon's first process: signals, supervisor, end. Returns the exit status. `read` reads
/// the configuration again.
int run_supervisor(const Config& config, std::function<std::optional<Config>()> read);

}  // namespace slate::daemon
