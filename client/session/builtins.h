// How Session prepares what is not the program's. Private to client/session.
#pragma once

#include "client/session/session_calls.h"

namespace slate::client {

/// Waits for what `work` puts on a stream of its own: no work of the program is waited for, and all
/// of it comes later.
template <typename Work>
Result<void> Session::on_own_stream(Work work) {
  const auto stream = create_stream(ipc::kStreamNonBlocking, 0);
  if (!stream) return std::unexpected(stream.error());
  Result<void> done = work(*stream);
  if (done) done = ask_to_synchronize(ipc::TargetKind::kStream, *stream);
  (void)destroy_stream(*stream);
  return done;
}

}  // namespace slate::client
