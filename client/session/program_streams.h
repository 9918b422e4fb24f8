// Streams and events as programs name them: by ids of the session's tables, or by the handles of
// the default streams. Any thread.
#pragma once

#include <cstdint>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// The meaning of a null handle: the default stream that all threads share, or the thread's own. It
/// depends on how the program was compiled.
enum class DefaultStream { kLegacy, kPerThread };

/// The handles of the default streams, the same in all of CUDA's APIs.
inline constexpr std::uint64_t kLegacyHandle = 1;
inline constexpr std::uint64_t kPerThreadHandle = 2;

/// The id behind a handle; kInvalidHandle. Makes the thread's own stream on its first use; the
/// thread's end destroys it.
Allowed<std::uint64_t> stream_of(Session& session, std::uint64_t handle, DefaultStream zero);
/// The id behind an event's handle; kInvalidHandle, or kHandleOfEnded.
Allowed<std::uint64_t> event_of(Session& session, std::uint64_t handle);

/// Destroys a stream of the program, ends what it captures, and forgets its attributes.
Result<void> destroy_program_stream(Session& session, std::uint64_t stream);
/// Milliseconds between two records; nothing when one of them is not reached. kInvalidHandle for an
/// event that is not timed or was never recorded; see also Captures::check_event().
Allowed<std::optional<float>> elapsed_between(Session& session, std::uint64_t start,
                                              std::uint64_t stop);

}  // namespace slate::client
