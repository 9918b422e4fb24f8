#include "daemon/engine/commands/stream_commands.h"

#include <memory>

namespace slate::daemon {

using ipc::CommandType;
using ipc::TargetKind;

Result<void> StreamCommands::on(const Call<CommandType::kStreamCreate>& call) {
  const bool blocking = (call.body.flags & ipc::kStreamNonBlocking) == 0;
  const auto made =
      context_.streams.create(call.body.id, blocking, call.body.priority, call.body.progress);
  if (!made) return made;
  if (context_.book) (*context_.streams.find(call.body.id))->book_row = context_.book->stream_row();
  return {};
}

Result<void> StreamCommands::on(const Call<CommandType::kStreamDestroy>& call) {
  // An open batch of launches would refer to it.
  context_.executor.flush(context_.client);
  const auto found = context_.streams.find(call.body.id);
  if (!found) return std::unexpected(found.error());
  const auto stream = context_.streams.share(**found);
  if (const auto destroyed = context_.streams.destroy(call.body.id); !destroyed) return destroyed;
  if (!context_.book) return {};
  const auto end = [book = context_.book, id = stream->id, row = stream->book_row,
                    position = context_.streams.position()] {
    book->stream_gone(id, row, position);
  };
  call.reply.unfinished = stream->busy();
  if (!call.reply.unfinished) {
    end();
    return {};
  }
  context_.streams.watches().watch_later(*stream, [end](const Result<void>& outcome) {
    if (outcome) end();
  });
  return {};
}

/// The streams with unfinished work that the target means.
Result<std::vector<LogicalStream*>> StreamCommands::streams_of(const ipc::Target& target) {
  if (target.kind == TargetKind::kSession) return context_.streams.unfinished(nullptr);
  if (target.kind != TargetKind::kStream)
    return fail(ErrorCode::kProtocol, "unknown kind of target");
  const auto stream = context_.streams.find(target.id);
  if (!stream) return std::unexpected(stream.error());
  return context_.streams.unfinished(*stream);
}

Result<bool> StreamCommands::is_finished(const ipc::Target& target) {
  if (target.kind == TargetKind::kEvent) {
    const auto record = events_.find(target.id);
    if (!record) return std::unexpected(record.error());
    if (!(*record)->event) return true;
    auto reached = context_.device.query((*record)->event->get());
    // The fault may be another session's, which is none of this one's; its own it hears of anyway.
    if (!reached && (*record)->shared && !context_.device.lost()) return true;
    if (reached && *reached)
      context_.note_done((*record)->book_row, (*record)->position, (*record)->time_row);
    return reached;
  }
  const auto streams = streams_of(target);
  if (!streams) return std::unexpected(streams.error());
  for (LogicalStream* stream : *streams) {
    const auto finished = context_.streams.query(*stream);
    if (!finished || !*finished) return finished;
    context_.note_done(stream->book_row, context_.streams.position());
  }
  return true;
}

Result<void> StreamCommands::on(const Call<CommandType::kQuery>& call) {
  const auto finished = is_finished(call.body);
  if (!finished) return context_.checked(std::unexpected(finished.error()));
  if (context_.faults.failed()) return std::unexpected(context_.faults.error());
  call.reply.set(ipc::QueryReply{*finished ? 1u : 0u, 0});
  return {};
}

/// A callback that answers the command of `header` when it was called as often as there are `done`,
/// with the first fault if there was one.
Completer::Callback StreamCommands::answer_when(const ipc::CommandHeader& header,
                                                std::vector<Done> done) {
  struct Waiting {
    std::size_t left;
    Result<void> outcome;
    std::vector<Done> done;
  };
  auto waiting = std::make_shared<Waiting>(
      Waiting{.left = done.size(), .outcome = {}, .done = std::move(done)});
  // Callbacks of one group run one at a time: no lock.
  return
      [this, waiting, header, position = context_.streams.position()](const Result<void>& outcome) {
        if (!outcome && waiting->outcome) waiting->outcome = outcome;
        if (--waiting->left > 0) return;
        if (!waiting->outcome) context_.faults.on_device_error(waiting->outcome.error());
        // Before the answer: after it the client may change memory that an open command reads.
        if (waiting->outcome) {
          for (const Done& each : waiting->done)
            context_.note_done(each.book_row, each.position, each.time_row);
        }
        answer_(header, context_.faults.failed() ? std::unexpected(context_.faults.error())
                                                 : waiting->outcome);
        if (context_.book) context_.book->book().close(position);
      };
}

Result<void> StreamCommands::wait_for_event(const Call<CommandType::kSynchronize>& call) {
  const auto record = events_.find(call.body.id);
  if (!record) return std::unexpected(record.error());
  if (!(*record)->event) return {};
  call.reply.deferred = true;
  auto answer =
      answer_when(call.header, {{(*record)->book_row, (*record)->position, (*record)->time_row}});
  if ((*record)->shared) {
    answer = [this, told = std::move(answer)](const Result<void>& outcome) {
      told(context_.device.lost() ? outcome : Result<void>());
    };
  }
  context_.completer.watch(context_.group, (*record)->event, std::move(answer));
  return {};
}

Result<void> StreamCommands::on(const Call<CommandType::kSynchronize>& call) {
  if (call.header.reply_slot == ipc::kNoReply)
    return fail(ErrorCode::kProtocol, "a wait that nobody waits for");
  const auto finished = is_finished(call.body);
  if (!finished) return context_.checked(std::unexpected(finished.error()));
  if (*finished && context_.faults.failed()) return std::unexpected(context_.faults.error());
  if (*finished) return {};
  if (call.body.kind == TargetKind::kEvent) return wait_for_event(call);
  const auto streams = streams_of(call.body);
  if (!streams) return std::unexpected(streams.error());
  if (streams->empty()) return {};
  std::vector<Done> done;
  for (const LogicalStream* stream : *streams)
    done.push_back({stream->book_row, context_.streams.position()});
  const auto callback = answer_when(call.header, std::move(done));
  for (LogicalStream* stream : *streams) {
    const auto placed =
        context_.completer.watch(context_.group, stream->device, Completer::Callback(callback));
    if (!placed) return context_.checked(placed);
  }
  call.reply.deferred = true;
  return {};
}

}  // namespace slate::daemon
