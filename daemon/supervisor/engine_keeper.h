// EngineKeeper: keeps an engine running. It starts it, reads its messages, and replaces it when it
// dies. When engines die at start-up, it waits longer each time. Where configured it keeps a spare
// one, and two for a while after one has died. An engine that was renewed serves those sessions on
// that cannot leave it. Supervisor thread only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"

namespace slate::daemon {

/// More than 25 functions and 15 members, because starting, renewing and replacing an engine have
/// the same state.
class EngineKeeper {
 public:
  /// Older engines with sessions beyond which refresh() adds none. Each takes memory of the device.
  static constexpr std::size_t kMostOlder = 3;

  struct Events {
    /// The engine takes sessions.
    std::function<void(EngineProcess& engine)> ready;
    /// From an engine that has sessions; not about its own life.
    std::function<void(EngineProcess& engine, LinkMessage message)> message;
    /// The engine's sessions are lost, but for those that go on in the next one.
    std::function<void(const EngineProcess& engine, const Error& cause)> died;
    /// Whether the engine with this serial number has sessions.
    std::function<bool(std::uint64_t serial)> is_in_use;
  };

  /// `program`: the path of slated. `serials`: the last serial number of an engine; outlives it.
  EngineKeeper(std::string program, const Config& config, std::uint64_t& serials, Events events)
      : program_(std::move(program)),
        config_(config),
        serials_(serials),
        events_(std::move(events)) {}

  void add_to(PollSet& polls) const;
  /// Starts engines that are due, reads messages, notices engines that died.
  void service();

  /// The engine that takes sessions; null while there is none.
  EngineProcess* active() { return active_ && active_->ready ? &*active_ : nullptr; }
  /// The engine with this serial number, if it serves sessions; else null.
  EngineProcess* find(std::uint64_t serial);
  /// The engines that serve sessions.
  std::vector<EngineProcess*> serving();
  /// Has a new engine take the place of the active one as soon as it is ready. The old one stays
  /// until it has no sessions. `program`: its path, from now on.
  void renew(const std::string& program, const Config& config);
  /// As renew(), with the same program. A spare engine that is there takes the place. False: as
  /// many older engines as there may be have sessions.
  bool refresh();
  /// Whether an engine is about to take the active one's place.
  bool renews() const { return renewing_; }
  /// Whether the active engine was started since the last renew(); true without one.
  bool is_renewed() const { return !active_ || active_->serial > renewed_from_; }

  /// The device's memory is needed: spare engines that are not asked for always end, for a while.
  /// False: there is none.
  bool give_up_spares();
  /// The pids of the spare engines that are ready, the next to take over first.
  std::vector<pid_t> spares() const;
  /// Bytes of the device's memory that they take; 0: unknown.
  std::uint64_t spare_bytes() const;
  /// Whether processes of engines are about to end, whose memory is the device's again then.
  bool has_leaving() const { return !leaving_.empty(); }

  /// The engines that have sessions, for a newer slated. The others end.
  nlohmann::json hand_over(Handover& handover);
  /// Engines as hand_over() has left them. Requires: none was started.
  void take_over(const nlohmann::json& state);
  /// Why engines die at start-up again and again; else empty.
  const std::string& trouble() const { return trouble_; }
  /// The first engine's error when its device does not exist: the daemon should end.
  const std::optional<Error>& hopeless() const { return hopeless_; }

  /// Tells the engines to end. No engine starts after this.
  void stop(const std::string& reason);
  bool all_ended() const {
    return !active_ && spares_.empty() && retired_.empty() && leaving_.empty();
  }
  void kill_all();

  pid_t pid() const { return active_ ? active_->pid() : 0; }
  std::uint64_t restarts() const { return restarts_; }
  const std::string& last_fault() const { return last_fault_; }

 private:
  void tell_stop();
  void end_spares(std::size_t kept);
  void start_due();
  bool starts_spare() const;
  std::size_t spares_wanted() const;
  bool has_room() const;
  Result<EngineProcess> start_process(std::uint32_t flags);
  void start_active();
  void started(EngineProcess& engine);
  bool read(EngineProcess& engine, bool has_sessions);
  void watch(EngineProcess& engine);
  std::optional<Error> end_of(EngineProcess& engine, bool has_sessions);
  void service_active();
  void service_spares();
  void service_retired();
  void service_leaving();
  void replace(const EngineProcess& engine, const Error& cause);
  void start_up_failed(const Error& cause);
  void retire_active();

  std::string program_;
  Config config_;
  std::uint64_t& serials_;
  const Events events_;
  std::optional<EngineProcess> active_;
  std::list<EngineProcess> spares_;   // in the order in which they were started
  std::uint64_t renewed_from_ = 0;    // serial number of the last engine before renew()
  bool renewing_ = false;             // whether a spare one is to take the active one's place
  std::list<EngineProcess> retired_;  // renewed ones, until their sessions have left or ended
  std::list<EngineProcess> leaving_;  // frozen ones, whose processes take their time to end
  Clock::time_point start_at_ = Clock::now();
  std::optional<Clock::time_point> spare_at_;      // when the next spare one may start
  std::optional<Clock::time_point> second_until_;  // how long two spare ones are kept
  int failures_ = 0;                               // failed starts in a row
  bool was_ever_ready_ = false;
  bool stopping_ = false;
  std::string stop_reason_;
  std::uint64_t restarts_ = 0;
  std::string last_fault_;
  std::string trouble_;
  std::optional<Error> hopeless_;
};

}  // namespace slate::daemon
