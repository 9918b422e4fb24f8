// The frame of an engine process: it dies with its supervisor, leaves signals to it, takes its
// configuration from it, and opens the device.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "daemon/dispatch/device_dispatch.h"
#include "daemon/engine/engine.h"

namespace slate::daemon {
namespace {

struct Configuration {
  Config config;
  bool is_spare = false;
};

/// The link's first message. Waits for it.
Result<Configuration> receive_configuration(const EngineLink& link) {
  while (true) {
    pollfd poller{link.fd(), POLLIN, 0};
    if (::poll(&poller, 1, -1) < 0 && errno != EINTR) return fail_errno("engine link");
    auto message = link.receive();
    if (!message) return std::unexpected(message.error());
    if (!*message) continue;
    const LinkHeader& header = (*message)->header;
    if (header.type != LinkType::kConfigure)
      return fail(ErrorCode::kProtocol, "the supervisor sent no configuration");
    if (getppid() != static_cast<pid_t>(header.pid))
      return fail(ErrorCode::kUnavailable, "the supervisor is gone");
    auto config = parse_config((*message)->text, "configuration");
    if (!config) return std::unexpected(config.error());
    return Configuration{std::move(*config), (header.flags & kSpare) != 0};
  }
}

/// What ptxas does not compile the driver does, with a cache of its own beside ours.
device::OpenSettings open_settings(const Configuration& given) {
  const Config& config = given.config;
  device::OpenSettings open;
  open.measures_own = given.is_spare;
  open.assembler = config.ptxas;
  const auto directory = cache_directory(config);
  if (!directory.empty() && config.cache_size.bytes != 0) {
    open.driver_cache = directory / "driver";
    open.driver_cache_bytes = config.cache_size.bytes;
  }
  return open;
}

int start_failed(const EngineLink& link, const Error& why) {
  (void)link.send({.type = LinkType::kStartFailed, .code = why.code},
                  std::string_view(why.message).substr(0, kMaxLinkText));
  return 1;
}

}  // namespace

int run_engine() {
  // A supervisor that died before this line has closed the link, or is no more the parent.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The supervisor says when to stop: a Ctrl-C at the terminal comes to both.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  // Many sessions' streams, and those of the partitions: with CUDA's default of 8 ways into the
  // hardware they would wait for one another without need. Its price: 0.4 s when the context is
  // made, 0.15 s at its end, 3 s until a trap is noticed (docs/results/recovery.md). Who starts
  // slated may choose otherwise.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  EngineLink link{UniqueFd(kEngineLinkFd)};
  auto given = receive_configuration(link);
  if (!given) return start_failed(link, given.error());
  Config& config = given->config;
  set_up_log("engine", config.log_level);
  auto opened = device::open_device(config.device, open_settings(*given));
  if (!opened) return start_failed(link, opened.error());
  if (config.dispatch == DispatchChoice::kDevice) {
    if (const auto can = check_device_dispatch(**opened); !can)
      return start_failed(link, can.error());
  }
  log_debug("engine on {}", (*opened)->info().name);
  auto* const engine = new Engine(std::move(*opened), std::move(link), std::move(config),
                                  {.program = "/proc/self/exe"});
  const int status = engine->run();
  // With threads still at work there is nothing safe to destroy: the process ends as it is.
  if (status != 0) std::_Exit(status);
  delete engine;
  return 0;
}

}  // namespace slate::daemon
