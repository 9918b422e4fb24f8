// Copies with a CUDA array on one side or both: what CUDA allows, and which of the session's copies
// it is.
#pragma once

#include "client/session/box_copy.h"
#include "client/session/session.h"

namespace slate::client {

/// Whether a graph can have the copy: what a copy at once is refused for, all of it kInvalidValue
/// but the direction.
Allowed<void> check_array_node(Session& session, const BoxCopy& copy);
/// Does it on `stream`, or captures it. Returns as copy_rows() does. Requires: has_array().
Allowed<void> copy_array(Session& session, const BoxCopy& copy, bool asynchronous,
                         std::uint64_t stream);

}  // namespace slate::client
