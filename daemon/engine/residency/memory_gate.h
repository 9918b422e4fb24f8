// MemoryGate: lets a session's commands pass once the memory that they use is on the device. It
// moves the session's memory in and out, where not all sessions' memory fits (residency.h). While
// it waits, nothing of the session is on its way to the device. Session thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "daemon/engine/commands/command_reach.h"
#include "daemon/engine/residency/segment_backing.h"
#include "ipc/commands.h"

namespace slate::daemon {

class MemoryGate {
 public:
  struct Ground {
    std::uint64_t session;
    uid_t uid;
    MemoryCommands& memory;
    CommandReach& reach;
    /// Waits a moment for the session's work; true: none is left on the device.
    std::function<bool()> finish_work;
    /// Whether the session has failed, or nobody waits for it any more. A system call.
    std::function<bool()> is_over;
  };
  /// All of it outlives the gate.
  explicit MemoryGate(Ground ground) : of_(std::move(ground)) {}

  /// To be called in front of each command. Errors: those of moves; kOutOfMemory where there can
  /// be no room on device and host; kUnavailable when the session ends.
  Result<void> pass(const ipc::Command& command) {
    SegmentBacking* const backing = of_.memory.backing();
    if (backing == nullptr || !backing->tenant().looks()) [[likely]]
      return {};
    return look(*backing, command);
  }
  /// Has memory of sessions leave, this one's too, until the device has room for so many bytes.
  /// They are kept free while `use()` runs. False: there can be no such room, or the session ends.
  /// Requires: the present command needs no memory of the session.
  bool with_free(std::uint64_t bytes, const std::function<void()>& use);
  /// Moves out what was asked to leave, if anything was. To be called when the session is idle.
  Result<void> tend();

 private:
  using Needs = SegmentBacking::Needs;
  /// Why not all of the needed memory has come.
  enum class Missed {
    kMustLeave,  // some of the session's memory has to leave first
    kTooMuch,    // there can be no room for all of it
  };
  struct Use {
    Needs needs;
    SegmentBacking::Written written;
  };

  std::optional<Use> use_of(SegmentBacking& backing, const ipc::Command& command);
  Result<void> make_present(SegmentBacking& backing, const Needs& needs);
  Result<void> look(SegmentBacking& backing, const ipc::Command& command);
  Result<void> move_out(SegmentBacking& backing, std::uint64_t bytes, const Needs& needed);
  Result<Residency::Taken> take_free(SegmentBacking& backing, std::uint64_t bytes);
  static Needs wanted(SegmentBacking& backing, const Needs& command);
  Result<std::optional<Missed>> fetch(SegmentBacking& backing, const Needs& needs, bool may_link);
  Result<void> unlink(SegmentBacking& backing);
  void say_linked();
  Result<void> drain();

  const Ground of_;
  bool said_linked_ = false;
};

}  // namespace slate::daemon
