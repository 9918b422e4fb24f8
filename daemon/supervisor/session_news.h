// What an engine hears of one session: the session itself, its memory, and changes. Nothing waits:
// what the link has no room for is said later. Supervisor thread only.
#pragma once

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/session_record.h"

namespace slate::daemon {

/// Hands the session over, with the memory that is held for it. `others_come`: whether other users'
/// sessions are in the engine, or are to come there. False: not now. Requires: it is kReady.
bool tell_of(SessionRecord& record, const EngineProcess& engine, bool others_come);
/// Whether the session's engine has not heard something yet.
bool has_news(const SessionRecord& record);
/// Tells the session's engine what it has not heard yet.
void tell_news(SessionRecord& record, const EngineProcess& engine);
/// The session is over and does not come to the engine, which may have memory of it.
void tell_gone(const SessionRecord& record, const EngineProcess& engine);

}  // namespace slate::daemon
