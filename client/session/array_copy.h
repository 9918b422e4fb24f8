// Copies with a CUDA array on one side or both: CUDA's rules, and the choice among the session's
// copies.
#pragma once

#include "client/session/box_copy.h"
#include "client/session/session.h"

namespace slate::client {

/// Whether a graph can have the copy. The rules are those of an immediate copy. All errors but the
/// direction's are kInvalidValue.
Allowed<void> check_array_node(Session& session, const BoxCopy& copy);
/// Does the copy on `stream`, or captures it. Returns as copy_rows() does. Requires: has_array().
Allowed<void> copy_array(Session& session, const BoxCopy& copy, bool asynchronous,
                         std::uint64_t stream);

/// The same copy with elements as its unit, where all of it is whole ones of one size. Requires:
/// has_array(), and the unit is bytes.
Allowed<BoxCopy> in_elements(Session& session, BoxCopy copy);
/// A copy of so many bytes, which in arrays go on from row to row. The sides have positions in
/// arrays, or memory without a pitch. Does it as copy_array(). Requires: as in_elements().
Allowed<void> copy_array_bytes(Session& session, const BoxCopy& copy, bool asynchronous,
                               std::uint64_t stream);

}  // namespace slate::client
