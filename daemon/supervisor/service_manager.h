// ServiceManager: what systemd gives slated, and what it is told. Where slated was started
// otherwise there is no socket, and telling does nothing. Supervisor thread only.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/supervisor/poll_set.h"

namespace slate::daemon {

class ServiceManager {
 public:
  /// Takes what is meant for this process out of the environment, so that no child sees it.
  ServiceManager();

  /// The socket that programs connect to; none: slated makes it. Once. Errors: kInvalidValue for
  /// more than one.
  Result<UniqueFd> take_socket();

  void tell_ready() const { tell("READY=1"); }
  void tell_stopping() const { tell("STOPPING=1"); }

  /// Says in time that slated lives, if that is asked for.
  /// The time between two signs of life; 0: nobody waits for any.
  Clock::duration watchdog() const { return every_; }
  /// What the program before was told is known no more; this one goes on with `every`.
  void go_on(Clock::duration every);
  void add_to(PollSet& polls) const;
  void service();

 private:
  void tell(const char* state) const;

  int given_ = 0;            // number of descriptors
  Clock::duration every_{};  // half of the time after which slated counts as dead; 0: never
  Clock::time_point next_{};
};

}  // namespace slate::daemon
