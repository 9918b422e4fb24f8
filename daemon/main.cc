// slated. Two processes of one binary: the supervisor (no CUDA; rendezvous, registry, control)
// starts the engine (device, sessions) and replaces it when it dies. This file only chooses which
// of the two to be, and wires it.
#include "base/log.h"
#include "daemon/engine/engine.h"
#include "daemon/options.h"
#include "daemon/profile/database.h"
#include "daemon/supervisor/supervisor.h"
#include "injector/cache/cache.h"

int main(int argc, char** argv) {
  using namespace slate;
  const auto options = daemon::parse_options(argc, argv);
  if (!options) return options.error();
  const daemon::Config& config = options->config;
  set_up_log(options->is_engine ? "engine" : "slated", config.log_level);
  if (!options->is_engine) return daemon::run_supervisor(config);

  daemon::EngineSettings settings;
  settings.kill_grace =
      std::chrono::milliseconds(static_cast<int>(config.kill_grace_seconds * 1000));
  settings.kill_stuck_engine = config.kill_stuck_engine;
  settings.cache_directory = config.cache_dir.empty() ? cache::default_directory("/var/cache/slate")
                                                      : std::filesystem::path(config.cache_dir);
  settings.cache_bytes = config.cache_size;
  settings.assembler = config.ptxas;
  settings.policy = config.policy;
  settings.scheduler = config.scheduler;
  settings.trace_events = config.trace_events;
  settings.state_directory = daemon::state_directory(config.state_dir);
  settings.form = *daemon::parse_form_choice(config.form);  // parse_options() has checked it
  return daemon::run_engine(config.device, options->control_fd, options->parent_pid,
                            std::move(settings));
}
