#include "daemon/engine/command_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace slate::daemon {

using ipc::Command;
using ipc::CommandType;

namespace {

bool ends_an_object(CommandType type) {
  return ipc::visit_row<bool>(
      type, []<typename Row>() { return Row::kObject == ipc::Object::kEnds; },
      [] { return false; });
}

bool copies(CommandType type) {
  return type == CommandType::kCopy || type == CommandType::kCopyInline;
}

}  // namespace

CommandServer::CommandServer(Context context) : of_(std::move(context)) {}

/// Returns false.
bool CommandServer::end(const Error& reason) {
  of_.end(reason);
  return false;
}

bool CommandServer::serve(Command& command) {
  if (of_.faults.failed()) {
    answer_failed(command);
    return true;
  }
  const std::uint64_t position = of_.channel.position();
  if (of_.parts.held().must_wait(command)) {
    write_waiting(command, position);
    if (!keep(command)) return false;
  } else if (!carry_out(command, position)) {
    return false;
  }
  if (of_.book != nullptr && !put_back_) of_.book->taken(position);
  return true;
}

/// In the journal, as the next engine would not find it in the ring.
void CommandServer::write_waiting(const Command& command, std::uint64_t position) {
  if (of_.book != nullptr)
    of_.book->write(position, of_.parts.book_row_of(command), command, false);
}

/// Keeps a command that has to wait; false when there are too many. A query is answered at once,
/// unless it is for an event's recording.
bool CommandServer::keep(Command& command) {
  const ipc::CommandHeader header = command.header;
  if (header.type == CommandType::kQuery) {
    const auto query = command.as<ipc::Target>();
    if (query && query->when_recorded == 0) {
      const ipc::QueryReply not_yet{0, 0};
      of_.channel.reply(header.reply_slot, header.reply_sequence,
                        std::as_bytes(std::span(&not_yet, 1)));
      return true;
    }
  }
  HeldCommands::Kept waiting{std::move(command), of_.channel.position()};
  // A wait is for what was recorded when the client asked for it, not for what comes meanwhile.
  if (header.type == CommandType::kStreamWaitEvent) {
    const auto wait = waiting.command.as<ipc::EventStream>();
    if (wait && !of_.parts.held().keeps_record(wait->event)) {
      if (const auto record = of_.parts.events().find(wait->event))
        waiting.recording = (*record)->event;
    }
  }
  const auto kept = of_.parts.held().keep(std::move(waiting));
  return kept || end(kept.error());
}

bool CommandServer::release_held() {
  (void)of_.parts.host_functions().take_opened();
  of_.parts.launches().release_ended();
  if (of_.faults.failed()) {
    of_.parts.held().give_up([this](const Command& command) { answer_failed(command); });
    return true;
  }
  return of_.parts.held().drain([this](const HeldCommands::Kept& kept) {
    return carry_out(kept.command, kept.position, &kept);
  });
}

bool CommandServer::carry_out(const Command& command, std::uint64_t position,
                              const HeldCommands::Kept* kept) {
  const ipc::CommandHeader& header = command.header;
  const bool has_reply = header.reply_slot != ipc::kNoReply;
  // It may take long, and the policy must not wait for the end of launches that nobody watches.
  if (has_reply) of_.executor.flush(of_.parts.client());
  if (!copies(header.type)) of_.parts.streams().watches().watch_put_off();
  of_.parts.streams().begin_command(position);
  if (of_.book != nullptr) {
    of_.book->begin(position);
    // Its answer, or the end of the stream's work, may come from another thread at once.
    const bool ends_stream = header.type == CommandType::kStreamDestroy;
    if ((ends_stream || header.type == CommandType::kSynchronize) && kept == nullptr)
      of_.book->write(position, Book::kNoStream, command, !ends_stream);
  }
  Present present;
  Result<void> done;
  if (has_reply && header.reply_slot >= ipc::kReplySlots) {
    done = slate::fail(ErrorCode::kProtocol, fmt::format("reply slot {}", header.reply_slot));
  } else {
    busy_.store(true, std::memory_order_release);
    done = of_.gate.pass(command);
    if (done) done = of_.parts.carry_out(command, kept, present);
    busy_.store(false, std::memory_order_release);
  }
  if (of_.departure.is_undecided()) {
    put_back_.emplace(command, position);
    return true;
  }
  // The engine before may have ended it.
  if (!done && position <= again_until_ && ends_an_object(header.type)) done = {};
  if (!done && done.error().code == ErrorCode::kProtocol) return end(done.error());
  if (!done && done.error().code == ErrorCode::kOutOfMemory && has_reply &&
      of_.parts.held().keeps_frees()) {
    if (kept == nullptr) write_waiting(command, position);
    const auto waits = of_.parts.held().keep_for_room({command, position});
    return waits || end(waits.error());
  }
  answer(command, done, present.reply);
  if (of_.book != nullptr && !present.reply.deferred) {
    if (!done) {
      of_.book->refused(position);
    } else if (present.stream == nullptr && !present.reply.unfinished) {
      of_.book->close(position);
    }
  }
  // The client may wait for the progress of every command on a stream, also one that was refused.
  if (!present.reply.unfinished && present.stream != nullptr &&
      !of_.parts.streams().command_submitted())
    of_.parts.streams().end_command(*present.stream);
  return true;
}

/// Tells the client how a command went that was carried out.
void CommandServer::answer(const Command& command, const Result<void>& done, const Reply& reply) {
  const ipc::CommandHeader& header = command.header;
  const bool has_reply = header.reply_slot != ipc::kNoReply;
  if (!done) {
    log_debug("session {}: {}", of_.session, done.error().message);
    if (has_reply) {
      of_.channel.reply_error(header.reply_slot, header.reply_sequence, done.error());
    } else {
      of_.channel.set_async_error(done.error());
    }
  } else if (has_reply && !reply.deferred) {
    of_.channel.reply(header.reply_slot, header.reply_sequence,
                      std::span(reply.bytes.data(), reply.size));
  }
}

void CommandServer::answer_failed(const Command& command) {
  const Error error = of_.faults.error();
  if (command.header.reply_slot != ipc::kNoReply) {
    of_.channel.reply_error(command.header.reply_slot, command.header.reply_sequence, error);
  }
  of_.parts.give_slot_back(command, error.code);
}

bool CommandServer::serve_again(const Book::Open& open) {
  if (of_.faults.failed()) {
    answer_failed(open.command);
    return true;
  }
  const HeldCommands::Kept again{open.command, open.position};
  if (of_.parts.held().must_wait(again.command)) {
    const auto kept = of_.parts.held().keep(again);
    return kept || end(kept.error());
  }
  return carry_out(again.command, again.position, &again);
}

bool CommandServer::serve_put_back() {
  const HeldCommands::Kept command = std::move(*put_back_);
  put_back_.reset();
  if (of_.faults.failed()) {
    answer_failed(command.command);
  } else if (!carry_out(command.command, command.position)) {
    return false;
  }
  if (of_.book != nullptr) of_.book->taken(command.position);
  return true;
}

}  // namespace slate::daemon
