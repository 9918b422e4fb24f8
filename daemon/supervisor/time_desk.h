// TimeDesk: gives the engines of one device the page on which they show their time to one another,
// and tells what they show. A lone engine gets none. Supervisor thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "daemon/supervisor/engine_process.h"
#include "daemon/time_page.h"

namespace slate::daemon {

class TimeDesk {
 public:
  /// `engines`: all that serve sessions. Each gets a slot, once there are several. The slots of
  /// others are taken back, so that nobody waits for those.
  void settle(std::span<EngineProcess* const> engines);
  /// What the engine with this serial number shows; nullopt: nothing yet.
  std::optional<scheduler::ShownTime> shown_by(std::uint64_t engine) const;

  /// For a newer slated.
  nlohmann::json hand_over(Handover& handover) const;
  /// Errors: as TimePage::from_fd().
  Result<void> take_over(const nlohmann::json& state);

 private:
  void make_page();
  void take_slots_back(std::span<EngineProcess* const> engines);

  std::unique_ptr<TimePage> page_;  // null until there are several engines
  bool has_no_page_ = false;        // whether there was no memory for one
  std::uint64_t arrivals_ = 0;      // engines that got a slot
  // Value of arrivals_ of which each engine was told.
  std::map<std::uint64_t, std::uint64_t> told_;
};

}  // namespace slate::daemon
