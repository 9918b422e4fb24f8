#include "daemon/engine/residency/memory_gate.h"

#include <chrono>
#include <limits>
#include <utility>

#include "base/user_log.h"

namespace slate::daemon {

using ipc::CommandType;

namespace {

constexpr std::chrono::milliseconds kLook{5};  // how often a waiting session looks around
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

Error ending() {
  return {ErrorCode::kUnavailable, "the session is ending"};
}

/// Commands that hold on to an allocation. All memory has to be there first, and that part stays.
bool keeps_memory(CommandType type) {
  return type == CommandType::kTextureCreate || type == CommandType::kMemoryExport;
}

bool uses_memory(CommandType type) {
  return type == CommandType::kLaunch || type == CommandType::kCopy ||
         type == CommandType::kCopyInline || type == CommandType::kFill;
}

}  // namespace

/// Nullopt: no memory of the session.
std::optional<MemoryGate::Needs> MemoryGate::needs_of(SegmentBacking& backing,
                                                      const ipc::Command& command) {
  const CommandType type = command.header.type;
  if (keeps_memory(type)) return Needs{.everything = true, .segments = {}};
  if (!uses_memory(type)) return std::nullopt;
  const ReachedRanges reached = of_.reach.of({.command = command});
  Needs needs{.everything = reached.reads_anything || reached.writes_anything, .segments = {}};
  for (const auto* const ranges : {&reached.read, &reached.written}) {
    for (const device::AddressRange& range : *ranges) {
      if (const auto segment = backing.segment_at(range.base); segment != 0)
        needs.segments.insert(segment);
    }
  }
  if (!needs.everything && needs.segments.empty()) return std::nullopt;
  return needs;
}

Result<void> MemoryGate::look(SegmentBacking& backing, const ipc::Command& command) {
  Residency& residency = backing.residency();
  const auto needs = needs_of(backing, command);
  if (!needs) return tend();
  residency.note_use(backing.tenant());
  if (residency.settings().evicts_always) {
    if (const auto moved = unlink(backing); !moved) return moved;
    if (const auto moved = move_out(backing, kAll, *needs); !moved) return moved;
  }
  // What once did not fit is only reached on the host for as long as that is so.
  if (backing.linked(*needs) > 0 && backing.bytes_of(*needs) <= residency.settings().capacity) {
    if (const auto moved = unlink(backing); !moved) return moved;
  }
  while (true) {
    if (const std::uint64_t asked = residency.asked(backing.tenant()); asked > 0) {
      if (const auto moved = move_out(backing, asked, *needs); !moved) return moved;
    }
    if (backing.missing(*needs) == 0) break;
    const auto fetched = fetch(backing, *needs);
    if (!fetched) return std::unexpected(fetched.error());
    // It may use what has come, whatever was asked meanwhile.
    if (*fetched) break;
  }
  backing.note_use(*needs);
  return {};
}

Result<void> MemoryGate::tend() {
  SegmentBacking* const backing = of_.memory.backing();
  if (backing == nullptr || !backing->tenant().looks()) return {};
  const std::uint64_t asked = backing->residency().asked(backing->tenant());
  return asked == 0 ? Result<void>() : move_out(*backing, asked, {});
}

Result<void> MemoryGate::drain() {
  while (!of_.finish_work()) {
    if (of_.is_over()) return std::unexpected(ending());
  }
  return {};
}

Result<void> MemoryGate::move_out(SegmentBacking& backing, std::uint64_t bytes,
                                  const Needs& needed) {
  if (const auto drained = drain(); !drained) return drained;
  const auto moved = backing.move_out(bytes, needed);
  of_.memory.manager().note_moved();
  // The rest is locked, or the host has no room.
  backing.residency().cannot_leave(backing.tenant());
  return moved;
}

Result<void> MemoryGate::unlink(SegmentBacking& backing) {
  if (const auto drained = drain(); !drained) return drained;
  const auto moved = backing.unlink();
  of_.memory.manager().note_moved();
  return moved;
}

/// Once.
void MemoryGate::say_linked() {
  if (std::exchange(said_linked_, true)) return;
  log_of_user(of_.uid, LogLevel::kWarning,
              "session {}: one command needs more memory than the device has; kernels reach the "
              "rest in the host's memory, which is slow",
              of_.session);
}

/// Whether all has come; false: some of the session's memory has to leave first.
Result<bool> MemoryGate::fetch(SegmentBacking& backing, const Needs& needs) {
  if (const auto drained = drain(); !drained) return std::unexpected(drained.error());
  Residency& residency = backing.residency();
  Residency::Tenant& tenant = backing.tenant();
  residency.begin_wait(tenant, backing.missing(needs), backing.spare(needs));
  bool must_leave = false;
  const auto take_room = [&](std::uint64_t bytes) -> Result<Residency::Taken> {
    while (true) {
      const auto taken = residency.take(tenant, bytes, kLook);
      if (taken == Residency::Taken::kYes) return taken;
      must_leave = residency.asked(tenant) > 0;
      if (must_leave) return fail(ErrorCode::kUnavailable, "other memory has to leave first");
      if (taken == Residency::Taken::kNever) {
        say_linked();
        return taken;
      }
      if (of_.is_over()) return std::unexpected(ending());
    }
  };
  const auto brought = backing.bring(needs, take_room);
  residency.end_wait(tenant);
  of_.memory.manager().note_moved();
  if (brought) return true;
  if (must_leave) return false;
  return std::unexpected(brought.error());
}

}  // namespace slate::daemon
