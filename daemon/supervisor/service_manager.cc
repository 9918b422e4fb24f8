#include "daemon/supervisor/service_manager.h"

#include <systemd/sd-daemon.h>

#include <utility>

namespace slate::daemon {

ServiceManager::ServiceManager() : given_(::sd_listen_fds(1)) {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(1, &microseconds) <= 0) return;
  every_ = std::chrono::microseconds(microseconds / 2);
  next_ = Clock::now() + every_;
}

Result<UniqueFd> ServiceManager::take_socket() {
  const int given = std::exchange(given_, 0);
  if (given > 1) return fail(ErrorCode::kInvalidValue, "the service manager gave several sockets");
  return given == 1 ? UniqueFd(SD_LISTEN_FDS_START) : UniqueFd();
}

void ServiceManager::go_on(Clock::duration every) {
  every_ = every;
  next_ = Clock::now();
}

void ServiceManager::add_to(PollSet& polls) const {
  if (every_.count() != 0) polls.add_deadline(next_);
}

void ServiceManager::service() {
  if (every_.count() == 0 || Clock::now() < next_) return;
  next_ = Clock::now() + every_;
  tell("WATCHDOG=1");
}

void ServiceManager::tell(const char* state) const {
  ::sd_notify(0, state);
}

}  // namespace slate::daemon
