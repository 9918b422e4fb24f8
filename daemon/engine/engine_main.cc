// The frame of an engine process: it dies with its supervisor, leaves signals to it, and opens the
// device.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/engine/engine.h"

namespace slate::daemon {

int run_engine(const std::string& device, int control_fd, int parent_pid, EngineSettings settings) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_pid) return 1;  // it died before the line above
  // The supervisor says when to stop: a Ctrl-C at the terminal comes to both.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  EngineLink link{UniqueFd(control_fd)};
  auto opened = device::open_device(device);
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
