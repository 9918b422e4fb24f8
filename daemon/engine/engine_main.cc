// The frame of an engine process: it dies with its supervisor, leaves signals to it, and opens the
// device.
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/engine/engine.h"

namespace slate::daemon {
namespace {

/// What ptxas does not compile the driver does, with a cache of its own beside ours.
device::OpenSettings open_settings(const EngineSettings& settings) {
  device::OpenSettings open;
  open.assembler = settings.assembler;
  if (!settings.cache_directory.empty() && settings.cache_bytes != 0) {
    open.driver_cache = settings.cache_directory / "driver";
    open.driver_cache_bytes = settings.cache_bytes;
  }
  return open;
}

}  // namespace

int run_engine(const std::string& device, int control_fd, int parent_pid, EngineSettings settings) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_pid) return 1;  // it died before the line above
  // The supervisor says when to stop: a Ctrl-C at the terminal comes to both.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  // Many sessions' streams, and those of the partitions: with CUDA's default of 8 ways into the
  // hardware they would wait for one another without need. Its price is paid once: 0.4 s when the
  // context is made, 0.15 s at its end (H200).
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  EngineLink link{UniqueFd(control_fd)};
  auto opened = device::open_device(device, open_settings(settings));
  if (!opened) {
    (void)link.send({.type = LinkType::kStartFailed, .code = opened.error().code},
                    std::string_view(opened.error().message).substr(0, kMaxLinkText));
    return 1;
  }
  log_debug("engine on {}", (*opened)->info().name);
  auto* const engine = new Engine(std::move(*opened), std::move(link), std::move(settings));
  const int status = engine->run();
  // With threads still at work there is nothing safe to destroy: the process ends as it is.
  if (status != 0) std::_Exit(status);
  delete engine;
  return 0;
}

}  // namespace slate::daemon
