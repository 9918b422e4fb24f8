// StreamCommands: the commands that make and end streams, and that ask or wait for their work.
// StreamTable has the streams. Clients see most progress in their status page
// (StreamWatches::publish) and need not ask. Session thread, but for the answers to waits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/event_commands.h"
#include "daemon/engine/commands/part_context.h"

namespace slate::daemon {

class StreamCommands {
 public:
  /// Answers a command later, on any thread: with the error, or with an empty reply.
  using Answer = std::function<void(const ipc::CommandHeader& header, const Result<void>& outcome)>;

  /// `events` outlives it.
  StreamCommands(const PartContext& context, EventCommands& events, Answer answer)
      : context_(context), events_(events), answer_(std::move(answer)) {}

  Result<void> on(const Call<ipc::CommandType::kStreamCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kStreamDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kQuery>& call);
  Result<void> on(const Call<ipc::CommandType::kSynchronize>& call);

 private:
  Result<std::vector<LogicalStream*>> streams_of(const ipc::Target& target);
  Result<bool> is_finished(const ipc::Target& target);
  Result<void> wait_for_event(const Call<ipc::CommandType::kSynchronize>& call);
  /// Work that is done when the client is answered: all of a stream up to a command.
  struct Done {
    std::uint32_t book_row = Book::kNoStream;
    std::uint64_t position = 0;
    std::uint32_t time_row = EventTimes::kNoRow;  // of the event that the command has recorded
  };
  Completer::Callback answer_when(const ipc::CommandHeader& header, std::vector<Done> done);

  const PartContext& context_;
  EventCommands& events_;
  const Answer answer_;
};

}  // namespace slate::daemon
