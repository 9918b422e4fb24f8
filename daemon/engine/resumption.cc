#include "daemon/engine/resumption.h"

#include <optional>
#include <vector>

#include "base/user_log.h"
#include "daemon/engine/resume_order.h"
#include "daemon/engine/session_book.h"

namespace slate::daemon {
namespace {

std::optional<ipc::SlotTurn> turn_of(const ipc::Command& command) {
  if (command.header.type != ipc::CommandType::kCopy) return std::nullopt;
  const auto copy = command.as<ipc::Copy>();
  return copy ? ipc::slot_of(*copy) : std::nullopt;
}

}  // namespace

bool Resumption::has_past() const {
  return of_.spec.book && of_.spec.book->has_past();
}

Book& Resumption::book() const {
  return of_.spec.book->book();
}

void Resumption::settle() {
  of_.channel.skip_answered();
  for (const Book::Open& open : book().open()) close_if_done(open);
  of_.spec.book->drop_unfinished(of_.channel.position());
  book().taken(of_.channel.position());  // later no answer and no journal may say so
}

bool Resumption::run() {
  if (!has_past()) {
    if (of_.spec.order) of_.spec.order->wait_for_all();
    return true;
  }
  const bool is_suspect = of_.spec.suspected_of != ErrorCode::kNone;
  if (is_suspect) of_.spec.order->begin(of_.spec.id);
  const bool done = resume();
  if (is_suspect) {
    of_.executor.flush(of_.parts.client());
    of_.parts.streams().watch_ends();
    (void)of_.group.wait_empty(kSuspectTime);
    of_.spec.order->end(of_.spec.id);
  }
  if (of_.spec.order) of_.spec.order->wait_for_all();
  return done;
}

bool Resumption::resume() {
  const std::vector<Book::Open> all = book().open();
  const auto next = of_.channel.peek();
  of_.commands.set_again_until(next ? next->position : of_.channel.position());
  if (const auto why_not = of_.parts.why_not_again(all)) {
    // The offender is to hear of its own fault, and cannot be told from the others here.
    const ErrorCode fault = of_.spec.suspected_of;
    of_.faults.fail(
        {fault == ErrorCode::kNone ? ErrorCode::kLaunchFailed : fault,
         "the engine was replaced while work of the session may have been half done, which "
         "cannot be done again: " +
             *why_not});
  }
  for (const Book::Open& open : all) {
    if (!open.done && !of_.commands.serve_again(open)) return false;
  }
  if (const auto freed = of_.parts.free_retired(); !freed) {
    of_.end(freed.error());
    return false;
  }
  log_of_user(of_.spec.uid, LogLevel::kInfo,
              "session {} (uid {}, pid {}, {}) goes on in this engine", of_.spec.id, of_.spec.uid,
              of_.spec.pid, of_.spec.program);
  return true;
}

/// A command may be done without the book's saying so: the client has its answer, or its slot.
void Resumption::close_if_done(const Book::Open& open) {
  const auto turn = turn_of(open.command);
  const bool slot_is_done = turn && of_.channel.is_finished(*turn);
  if (slot_is_done) book().done(open.stream, open.position);  // its stream had come as far
  if (slot_is_done || of_.channel.is_answered(open.command.header)) book().close(open.position);
}

}  // namespace slate::daemon
