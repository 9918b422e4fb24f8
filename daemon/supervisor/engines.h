// Engines: the engines of one device, one keeper for each domain. The common domain always has one.
// Others get theirs with the first session, and lose it a while after the last one. Supervisor
// thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/supervisor/domain.h"
#include "daemon/supervisor/engine_keeper.h"
#include "daemon/supervisor/time_desk.h"

namespace slate::daemon {

class Engines {
 public:
  /// How long an engine other than the common one is kept without sessions.
  static constexpr std::chrono::seconds kIdle{10};

  /// Whether a session belongs to the domain.
  using HasSessions = std::function<bool(const Domain& domain)>;

  /// `program`: the path of slated.
  Engines(std::string program, const Config& config, EngineKeeper::Events events,
          HasSessions has_sessions);

  /// The engine that takes the domain's sessions; null while there is none. Starts one if the
  /// domain has no keeper.
  EngineProcess* of(const Domain& domain);
  /// The engine with this serial number, if it serves sessions; else null.
  EngineProcess* find(std::uint64_t serial);
  /// The domain whose sessions the engine serves; none: it is gone.
  std::optional<Domain> domain_of(std::uint64_t serial);
  bool has(const Domain& domain) const { return keepers_.contains(domain); }
  /// The common engine becomes that of `domain`, and all others get a new one. Requires: not
  /// has(domain).
  void give_common_to(const Domain& domain);
  /// As EngineKeeper::refresh(), of the domain's. Requires: has(domain).
  bool refresh(const Domain& domain) { return keepers_.at(domain)->refresh(); }
  /// Renews all engines, with the program at this path and this configuration.
  void renew(const std::string& program, const Config& config);
  bool renews() const;
  /// Whether all engines that take sessions were started since the last renew().
  bool are_renewed() const;

  /// For a newer slated. Engines without sessions end.
  nlohmann::json hand_over(Handover& handover);
  void take_over(const nlohmann::json& state);

  /// As EngineKeeper::give_up_spares(), of all.
  bool make_room();
  /// Whether memory of engines that end is about to be the device's again.
  bool gives_back() const;

  void add_to(PollSet& polls) const;
  void service();
  void stop(const std::string& reason);
  bool all_ended() const;
  void kill_all();

  const EngineKeeper& common() const { return *keepers_.at(Domain{}); }
  /// Why the domain's engines die at start-up again and again; else empty.
  std::string trouble(const Domain& domain) const;
  /// Engines that take sessions, the common one first.
  std::vector<std::pair<Domain, EngineProcess*>> all();
  /// What the engine with this serial number shows of its time; nullopt: there was no other one.
  std::optional<scheduler::ShownTime> time_of(std::uint64_t serial) const {
    return time_.shown_by(serial);
  }
  /// Engines that died while they served sessions.
  std::uint64_t restarts() const;
  /// Why the last common engine died or did not start, else another one; empty: none did.
  std::string last_fault() const;

 private:
  EngineKeeper& add(const Domain& domain);
  void drop_idle();
  void share_time();

  std::string program_;
  Config config_;
  const EngineKeeper::Events events_;
  const HasSessions has_sessions_;
  std::uint64_t serials_ = 0;
  std::map<Domain, std::unique_ptr<EngineKeeper>> keepers_;
  std::map<Domain, Clock::time_point> idle_since_;
  std::vector<std::unique_ptr<EngineKeeper>> leaving_;  // those of domains without sessions
  std::uint64_t past_restarts_ = 0;                     // of keepers that are gone
  TimeDesk time_;
  bool stopping_ = false;
};

}  // namespace slate::daemon
