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

/// Priorities of streams, as on current GPUs.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

/// Makes a stream of the program. `priority` is clamped to the range above.
Allowed<std::uint64_t> create_program_stream(Session& session, bool non_blocking, int priority);
/// Destroys a stream of the program, ends what it captures, and forgets its attributes.
Result<void> destroy_program_stream(Session& session, std::uint64_t stream);

/// kNotReady unless the stream's work is done. Takes the error of an earlier command. Refused while
/// the stream captures, as the next.
Allowed<void> query_stream(Session& session, std::uint64_t stream);
/// Waits for the stream's work, and writes what its kernels have printed.
Allowed<void> synchronize_stream(Session& session, std::uint64_t stream);
/// Has the stream call a function of the program, or captures that. It is not called once something
/// failed.
Allowed<void> call_on_stream(Session& session, std::uint64_t stream, void (*function)(void*),
                             void* data);

// Attributes, numbered as in all of CUDA's APIs. kInvalidValue for one that streams do not have.
Allowed<StreamAttributes::Value> attribute_of_stream(Session& session, std::uint64_t stream,
                                                     int attribute);
Allowed<void> set_attribute_of_stream(Session& session, std::uint64_t stream, int attribute,
                                      const StreamAttributes::Value& value);

}  // namespace slate::client
