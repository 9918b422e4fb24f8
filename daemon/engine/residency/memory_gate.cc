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
std::optional<MemoryGate::Use> MemoryGate::use_of(SegmentBacking& backing,
                                                  const ipc::Command& command) {
  const CommandType type = command.header.type;
  if (keeps_memory(type)) return Use{{.everything = true, .segments = {}}, {}};
  if (!uses_memory(type)) return std::nullopt;
  ReachedRanges reached = of_.reach.memory_of(command);
  Needs needs{.everything = reached.reads_anything || reached.writes_anything, .segments = {}};
  for (const auto* const ranges : {&reached.read, &reached.written}) {
    for (const device::AddressRange& range : *ranges) backing.add_needed(range, needs);
  }
  if (!needs.everything && needs.segments.empty()) return std::nullopt;
  return Use{std::move(needs), {reached.writes_anything, std::move(reached.written)}};
}

Result<void> MemoryGate::look(SegmentBacking& backing, const ipc::Command& command) {
  Residency& residency = backing.residency();
  const auto use = use_of(backing, command);
  if (!use) return tend();
  residency.note_use(backing.tenant());
  if (residency.settings().evicts_always) {
    if (const auto moved = unlink(backing); !moved) return moved;
    if (const auto moved = move_out(backing, kAll, use->needs); !moved) return moved;
  }
  if (const auto made = make_present(backing, use->needs); !made) return made;
  backing.note_use(use->needs);
  backing.note_written(use->written);
  return {};
}

Result<void> MemoryGate::make_present(SegmentBacking& backing, const Needs& needs) {
  Residency& residency = backing.residency();
  // What once did not fit is only reached on the host for as long as that is so.
  if (backing.linked(needs) > 0 && backing.bytes_of(needs) <= residency.settings().capacity) {
    if (const auto moved = unlink(backing); !moved) return moved;
  }
  while (true) {
    if (const std::uint64_t asked = residency.asked(backing.tenant()); asked > 0) {
      if (const auto moved = move_out(backing, asked, needs); !moved) return moved;
    }
    if (backing.missing(needs) == 0) return {};
    auto missed = fetch(backing, wanted(backing, needs), false);
    if (missed && *missed == Missed::kTooMuch) missed = fetch(backing, needs, true);
    if (!missed) return std::unexpected(missed.error());
    // It may use what has come, whatever was asked meanwhile.
    if (!*missed) return {};
  }
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
  if (moved || moved.error().code != ErrorCode::kOutOfMemory) return moved;
  // That is the trouble of the session for which it should have left.
  backing.residency().note_host_full();
  log_of_user(of_.uid, LogLevel::kWarning, "session {}: its memory stays on the device: {}",
              of_.session, moved.error().message);
  return {};
}

Result<void> MemoryGate::unlink(SegmentBacking& backing) {
  if (const auto drained = drain(); !drained) return drained;
  const auto moved = backing.unlink();
  of_.memory.manager().note_moved();
  return moved;
}

/// kNotYet: some of the session's memory has to leave first.
Result<Residency::Taken> MemoryGate::take_free(SegmentBacking& backing, std::uint64_t bytes) {
  Residency& residency = backing.residency();
  Residency::Tenant& tenant = backing.tenant();
  Result<Residency::Taken> taken = Residency::Taken::kNotYet;
  residency.begin_wait(tenant, bytes, backing.spare({}));
  while (taken && *taken == Residency::Taken::kNotYet && residency.asked(tenant) == 0) {
    taken = of_.is_over() ? Result<Residency::Taken>(std::unexpected(ending()))
                          : residency.take(tenant, bytes, kLook);
  }
  residency.end_wait(tenant);
  return taken;
}

bool MemoryGate::with_free(std::uint64_t bytes, const std::function<void()>& use) {
  SegmentBacking* const backing = of_.memory.backing();
  if (backing == nullptr) return false;
  while (true) {
    if (!tend()) return false;
    const auto taken = take_free(*backing, bytes);
    if (!taken || *taken == Residency::Taken::kNever) return false;
    if (*taken == Residency::Taken::kNotYet) continue;
    use();
    backing->residency().untake(backing->tenant(), bytes);
    return true;
  }
}

/// Once.
void MemoryGate::say_linked() {
  if (std::exchange(said_linked_, true)) return;
  log_of_user(of_.uid, LogLevel::kWarning,
              "session {}: one command needs more memory than the device has; kernels reach the "
              "rest in the host's memory, which is slow",
              of_.session);
}

/// The command's memory, and the working set if that fits, so that the next commands do not wait.
MemoryGate::Needs MemoryGate::wanted(SegmentBacking& backing, const Needs& command) {
  const Residency& residency = backing.residency();
  if (residency.settings().evicts_always) return command;
  if (residency.begins_turn(backing.tenant())) backing.begin_turn();
  Needs wanted = backing.with_working_set(command);
  const std::uint64_t bytes = backing.tenant().on_device() - backing.spare(wanted);
  const bool fits = bytes + backing.missing(wanted) <= residency.most_on_device(backing.tenant());
  return fits ? wanted : command;
}

/// What has not come, if anything. `may_link`: whether kernels may reach it on the host instead.
Result<std::optional<MemoryGate::Missed>> MemoryGate::fetch(SegmentBacking& backing,
                                                            const Needs& needs, bool may_link) {
  if (const auto drained = drain(); !drained) return std::unexpected(drained.error());
  Residency& residency = backing.residency();
  Residency::Tenant& tenant = backing.tenant();
  residency.begin_wait(tenant, backing.missing(needs), backing.spare(needs));
  std::optional<Missed> missed;
  const auto take_room = [&](std::uint64_t bytes) -> Result<Residency::Taken> {
    while (true) {
      const auto taken = residency.take(tenant, bytes, kLook);
      if (taken == Residency::Taken::kYes) return taken;
      if (residency.asked(tenant) > 0) {
        missed = Missed::kMustLeave;
      } else if (taken == Residency::Taken::kNever && !may_link) {
        missed = Missed::kTooMuch;
      }
      if (missed) return fail(ErrorCode::kUnavailable, "not all of the memory can come");
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
  if (brought) return std::optional<Missed>();
  if (missed) return missed;
  return std::unexpected(brought.error());
}

}  // namespace slate::daemon
