// SessionRecord: one session as the supervisor knows it, and as it hands it over to a newer slated.
// Plain data. Supervisor thread only.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/book.h"
#include "daemon/config.h"
#include "daemon/supervisor/domain.h"
#include "daemon/supervisor/handover.h"
#include "daemon/supervisor/poll_set.h"
#include "daemon/supervisor/session_rules.h"
#include "ipc/channel.h"
#include "ipc/meeting.h"

namespace slate::daemon {

struct SessionRecord {
  enum class State {
    kWaiting,  // no engine yet
    kReady,    // the client has its ends; the session waits for an engine
    kServing,  // the engine has the session
  };
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  UserSettings user;  // what the configuration gives its user
  /// The most device memory that its program wants, in bytes; it never raises the limit.
  std::uint64_t wished_memory = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t memory_limit = 0;  // device memory in bytes, as the client was told
  std::uint64_t user_memory = 0;   // the most that its user's sessions may have together, in bytes
  std::string program;
  double max_blocking_ms = 0;     // as UserRules::max_blocking_of()
  Standing standing;              // weight and priority
  bool standing_told = true;      // whether the session's engine knows its last change
  std::string end_untold;         // reason of an end that the session's engine has not heard of
  Domain domain;                  // whose engine serves the session, or the next one does
  std::uint64_t engine = 0;       // serial number of the engine that has the session; 0: none
  bool leave_untold = false;      // whether its engine has not heard yet that it is to leave
  bool leaves_when_idle = false;  // whether it leaves at a moment without work, and not at once
  bool stay_untold = false;       // whether its engine has not heard yet that it may stay
  bool is_suspended = false;      // whether no engine gets it until it is resumed
  bool is_unfenced = false;       // whether it has code that cannot be fenced
  bool was_served = false;        // whether an engine has had it
  bool waits = false;             // whether it has not begun, for others' kernels in its engine
  State state = State::kWaiting;
  Clock::time_point since;
  Clock::time_point deadline;  // deadline of the present state; kServing has none
  ipc::DaemonEnds ends;  // kept for the next engine, if this one dies; until kReady the socket only
  ipc::Segment segment;  // none until kReady; with its descriptor, for engines
  /// What the next engine needs to go on with the session; null until kReady.
  std::unique_ptr<Book> book;
  /// Memory that has to outlive the engine, by the entry of the book that it belongs to.
  struct Held {
    UniqueFd memory;
    std::uint64_t engine = 0;  // serial number of the engine that was given it last; 0: none
  };
  std::map<Book::Key, Held> held;
  // Engines that died of an unknown cause while they served it, one after the other without
  // progress in between.
  std::uint32_t losses = 0;
  /// The fault with which the last engine's device was lost, where its work may have been the
  /// cause; kNone: it was not.
  ErrorCode suspected_of = ErrorCode::kNone;
  std::uint64_t taken_at_loss = 0;  // position of its commands when the last one died
};

/// The session for a newer slated, with its descriptors.
nlohmann::json to_json(const SessionRecord& record, Handover& handover);
/// The session that an older slated has left. Errors: kProtocol; those of Segment::from_fd() and
/// Book::from_fd().
Result<SessionRecord> session_from(const nlohmann::json& state);

}  // namespace slate::daemon
