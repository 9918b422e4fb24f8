// Stream capture: what the program sends to a capturing stream becomes a node of a graph instead.
// The calls that can be captured ask here first; while no stream captures, that is one atomic load.
// Thread-safe.
#pragma once

#include <optional>

#include "client/cudart/graph.h"

namespace slate::cudart {

/// True while `stream` (an id) captures.
bool is_capturing(Session& session, std::uint64_t stream);

/// Nothing when `stream` does not capture and the work is to be done now; otherwise the work became
/// a node, and the value is the call's answer.
std::optional<Answer> capture(Session& session, std::uint64_t stream, Work work);
/// The same where making the work costs something.
template <typename Make>
std::optional<Answer> capture_made(Session& session, std::uint64_t stream, const Make& make) {
  if (!is_capturing(session, stream)) return std::nullopt;
  Maybe<Work> work = make();
  if (!work) return std::unexpected(work.error());
  return capture(session, stream, std::move(*work));
}

/// For what cannot be captured: the capture is lost, and the answer is
/// cudaErrorStreamCaptureUnsupported. `what` has a name when CUDA could capture it.
Answer refuse_capture(Session& session, std::uint64_t stream, const char* what = nullptr);

/// An answer when recording or waiting concerns a capture.
std::optional<Answer> capture_record(Session& session, std::uint64_t stream, cudaEvent_t event);
std::optional<Answer> capture_wait(Session& session, std::uint64_t stream, cudaEvent_t event);
/// The stream is no more: a capture that began there ends without a graph.
void end_captures_of(Session& session, std::uint64_t stream);
/// The event is no more.
void forget_event(Session& session, cudaEvent_t event);
/// Nothing can wait for an event by itself whose last recording was captured:
/// cudaErrorCapturedEvent during the capture, which is then lost if the caller `asks` how far the
/// work has come, and cudaErrorInvalidValue after it.
enum class Asks { kHowFar, kWhen };
Answer check_event(Session& session, cudaEvent_t event, Asks asks);

/// For calls that CUDA holds unsafe during a capture, as they may wait for the whole device:
/// cudaErrorStreamCaptureUnsupported while this thread may not make them (the mode of a capture and
/// that of the thread decide), and the captures that forbid them are lost.
Answer check_capture_allows(Session& session);

}  // namespace slate::cudart
