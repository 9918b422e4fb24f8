// Events of the program, by handle: what all of CUDA's APIs do with them. kInvalidHandle for a
// handle that is no event, kHandleOfEnded for one of an earlier session. Any thread.
#pragma once

#include <cstdint>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// Flags of a new event, numbered as in all of CUDA's APIs.
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventInterprocess = 4;

/// kInvalidValue for other flags, and for an event that is shared and timed.
Allowed<std::uint64_t> create_program_event(Session& session, unsigned flags);
Allowed<void> destroy_program_event(Session& session, std::uint64_t event);

/// Records an event on `stream`, an id, or captures that. `external`: a node of the capture's graph
/// records it at each launch; kIllegalState if the stream does not capture.
Allowed<void> record_event(Session& session, std::uint64_t event, std::uint64_t stream,
                           bool external);
/// Makes `stream`, an id, wait for an event's last record. `external`: as above.
Allowed<void> wait_for_event(Session& session, std::uint64_t stream, std::uint64_t event,
                             bool external);
/// kNotReady unless the event's last record is passed. Takes the error of an earlier command.
Allowed<void> query_event(Session& session, std::uint64_t event);
Allowed<void> synchronize_event(Session& session, std::uint64_t event);
/// Milliseconds between two records; kNotReady when one of them is not reached. kInvalidHandle for
/// an event that is not timed or was never recorded; see also Captures::check_event().
Allowed<float> elapsed_between(Session& session, std::uint64_t start, std::uint64_t stop);

/// The handle by which other programs open the event. kInvalidHandle for one that is not shared.
Allowed<ipc::ShareHandle> export_program_event(Session& session, std::uint64_t event);

}  // namespace slate::client
