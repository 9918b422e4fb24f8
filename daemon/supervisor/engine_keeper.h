// EngineKeeper: keeps an engine running. It starts it, reads its messages, and replaces it when it
// dies. When engines die at start-up, it waits longer each time. Where configured it keeps a spare
// one. Supervisor thread only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"

namespace slate::daemon {

class EngineKeeper {
 public:
  struct Events {
    std::function<void()> ready;  // an engine takes sessions
    std::function<void(LinkMessage message)>
        message;  // from the active engine; not about its own life
    /// The engine's sessions are lost. `culprit`: the session that is the likely cause; 0: unknown.
    std::function<void(const Error& cause, std::uint64_t culprit)> died;
  };

  /// `program`: the path of slated.
  EngineKeeper(std::string program, const Config& config, Events events)
      : program_(std::move(program)), config_(config), events_(std::move(events)) {}

  void add_to(PollSet& polls) const;
  /// Starts engines that are due, reads messages, notices engines that died.
  void service();

  /// The engine that takes sessions; null while there is none.
  EngineProcess* active() { return active_ && active_->ready ? &*active_ : nullptr; }
  /// Why engines die at start-up again and again; else empty.
  const std::string& trouble() const { return trouble_; }
  /// The first engine's error when its device does not exist: the daemon should end.
  const std::optional<Error>& hopeless() const { return hopeless_; }

  /// Tells the engines to end. No engine starts after this.
  void stop(const std::string& reason);
  bool all_ended() const { return !active_ && !spare_ && leaving_.empty(); }
  void kill_all();

  pid_t pid() const { return active_ ? active_->pid() : 0; }
  std::uint64_t restarts() const { return restarts_; }
  const std::string& last_fault() const { return last_fault_; }

 private:
  void tell_stop();
  void start_due();
  bool wants_spare() const;
  void start_active();
  bool read(EngineProcess& engine, bool is_active);
  void watch(EngineProcess& engine);
  std::optional<Error> end_of(EngineProcess& engine, bool is_active);
  void service_active();
  void service_spare();
  void service_leaving();
  void replace(const Error& cause, std::uint64_t culprit, bool was_ready);
  void start_up_failed(const Error& cause);

  const std::string program_;
  const Config config_;
  const Events events_;
  std::optional<EngineProcess> active_;
  std::optional<EngineProcess> spare_;
  std::list<EngineProcess> leaving_;  // frozen ones, whose processes take their time to end
  Clock::time_point start_at_ = Clock::now();
  std::optional<Clock::time_point> spare_at_;
  int failures_ = 0;  // failed starts in a row
  bool was_ever_ready_ = false;
  bool stopping_ = false;
  std::string stop_reason_;
  std::uint64_t restarts_ = 0;
  std::string last_fault_;
  std::string trouble_;
  std::optional<Error> hopeless_;
};

}  // namespace slate::daemon
