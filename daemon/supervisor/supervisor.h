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
#include "daemon/supervisor/engines.h"
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
  std::vector<std::string> arguments = {};  // of this slated, for the one that takes it over
};

class Supervisor {
 public:
  /// Opens the meeting point. `program`: the path of slated, for engines. `stop_fd` is readable
  /// when it is time to stop; the caller owns it.
  /// `state`: what an older slated has left for this one (Handover); null: this one begins.
  static Result<std::unique_ptr<Supervisor>> make(const Config& config, const std::string& program,
                                                  int stop_fd, Reload reload = {},
                                                  const nlohmann::json& state = {});
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
  EngineKeeper::Events engine_events();
  Result<std::string> renew(ipc::ControlVerb verb);
  void continue_upgrade();
  bool can_be_replaced() const;
  void hand_over();
  Result<void> take_over(const nlohmann::json& state);
  void engine_ready(EngineProcess& engine);
  void answer_engines();
  void engine_message(EngineProcess& engine, LinkMessage message);
  void engine_died(const EngineProcess& engine, const Error& cause);
  std::string refusal_of(std::uint32_t uid) const;
  void blame(std::uint64_t session, const std::string& what);
  void blame_user(std::uint32_t uid, const std::string& what);
  void stop();
  bool shows_all_to(std::uint32_t asker) const;
  std::string describe(const std::vector<std::string>& reports, std::uint32_t asker);

  const Config config_;
  const std::string program_;  // path of slated, for renewed engines
  const int stop_fd_;
  const Reload reload_;
  Clock::time_point started_ = Clock::now();
  ServiceManager manager_;
  Reception reception_;
  UserRules rules_;
  ProgramStore programs_;
  Registry registry_;
  SettingsDesk settings_;
  ControlDesk desk_;
  Engines engines_;
  Blame blame_;
  std::optional<DeviceInfo> device_;
  bool makes_room_ = false;  // whether an engine ends because another one needs its memory
  /// Questions (kFence) of engines, by serial number, that wait for that.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unanswered_;
  std::uint64_t past_launches_ = 0;
  std::uint64_t past_faults_ = 0;
  std::uint64_t upgrades_ = 0;  // slateds that have taken the process over, one after the other
  bool upgrading_ = false;      // whether another one is to, once the engines are renewed
  std::optional<Clock::time_point> upgrade_by_;  // when it does so, whoever is being served
  bool stopping_ = false;
};

/// Runs the daemon's first process: signals, supervisor, end. Returns the exit status. `read` reads
/// the configuration again. `arguments`: this program's.
int run_supervisor(const Config& config, std::vector<std::string> arguments,
                   std::function<std::optional<Config>()> read);

}  // namespace slate::daemon
