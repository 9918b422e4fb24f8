// PartContext: what the parts of a session use and do not own. A part owns one kind of the
// session's state and handles the commands on it: memory_commands.h and so on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/engine/commands/faults.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/exports.h"
#include "daemon/engine/held_commands.h"
#include "daemon/engine/residency/residency.h"
#include "daemon/engine/retirement.h"
#include "daemon/engine/session_book.h"
#include "daemon/engine/session_fence.h"
#include "daemon/engine/stream_table.h"
#include "device/device.h"

namespace slate::daemon {

/// All of it outlives the parts.
struct PartContext {
  std::uint64_t session;
  uid_t uid;
  device::Device& device;
  Executor& executor;
  Executor::Client& client;
  Completer& completer;
  Completer::Group& group;
  StreamTable& streams;
  Retirement& retirement;
  HeldCommands& held;
  std::shared_ptr<Exports> exports;
  std::shared_ptr<SessionBook> book;  // null: the session cannot leave this engine
  Faults& faults;
  SessionFence& fence;
  /// Whether nobody waits for the session's answers any more. A system call.
  std::function<bool()> is_over;
  /// Makes the session's thread look whether something can go on. Any thread.
  std::function<void()> wake = {};
  /// A module comes whose kernels cannot be fenced. True: the session may leave this engine first;
  /// then the command is put back, whatever comes of it. May be empty.
  std::function<bool()> leaves_first = {};
  /// As MemoryGate::with_free(). May be empty.
  std::function<bool(std::uint64_t bytes, const std::function<void()>& use)> with_free = {};
  Residency* residency = nullptr;     // null: all memory is on the device
  Residency::TenantSpec tenant = {};  // the session's, as the residency sees it

  /// Addresses to wish for.
  device::Device::Window window() const {
    const std::uint64_t swap = residency == nullptr ? 0 : residency->settings().swap;
    return device.window_of(session, device.info().total_memory + swap);
  }
  /// The client is about to hear that the work up to this command is done, or, if it has violated
  /// the fence, of that. `time_row`: of the event that the command has recorded. Its time comes
  /// first, as the engine may die in between.
  void note_done(std::uint32_t book_row, std::uint64_t position,
                 std::uint32_t time_row = EventTimes::kNoRow) const {
    look_at_fence();
    if (!book) return;
    book->book().times().reached(time_row, position);
    book->book().done(book_row, position);
  }
  /// Makes the first violation of the fence the session's lasting error. Any thread.
  void look_at_fence() const {
    if (auto violation = fence.violation()) [[unlikely]]
      faults.fail(std::move(*violation));
  }
  Result<void> checked(Result<void> result) const { return faults.checked(std::move(result)); }
  /// Runs `then`, which takes something away, behind all work that may use it. Kernels behind the
  /// fence may do so until `forbid` takes it out of their table, which is behind all work so far.
  Result<void> take_away(Retirement::Action forbid, Retirement::Action then) const {
    if (fence.is_on()) return checked(retirement.in_two_steps(std::move(forbid), std::move(then)));
    return checked(
        retirement.after_present_work([forbid = std::move(forbid), then = std::move(then)] {
          forbid();
          then();
        }));
  }
  /// Submits one piece of work to the stream by `work(device::Stream)`.
  template <typename Work>
  Result<void> submit(LogicalStream& stream, const Work& work) const {
    const auto target = streams.begin_work(stream);
    if (!target) return checked(std::unexpected(target.error()));
    if (auto done = work(*target); !done) return checked(std::move(done));
    streams.work_submitted(stream);
    return {};
  }
};

}  // namespace slate::daemon
