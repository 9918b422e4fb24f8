#include "daemon/engine/held_commands.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace slate::daemon {

using ipc::Command;

void HeldCommands::Counts::remove(std::uint64_t key) {
  const auto found = find(key);
  SLATE_CHECK(found != end());
  if (--found->second == 0) erase(found);
}

void HeldCommands::Summary::add(const Needs& needs) {
  frees += needs.frees ? 1 : 0;
  if (needs.only_waits) return;
  if (needs.stream) streams.add(*needs.stream);
  if (needs.event != 0) (needs.writes ? writers : readers).add(needs.event);
}

void HeldCommands::Summary::remove(const Needs& needs) {
  frees -= needs.frees ? 1 : 0;
  if (needs.only_waits) return;
  if (needs.stream) streams.remove(*needs.stream);
  if (needs.event != 0) (needs.writes ? writers : readers).remove(needs.event);
}

HeldCommands::Needs HeldCommands::needs_of(const Command& command) {
  return ipc::visit_row<Needs>(
      command.header.type,
      [&]<typename Row>() -> Needs {
        const auto body = command.as<typename Row::Body>();
        return body ? Needs{Row::order_of(*body)} : Needs{};
      },
      [] { return Needs{}; });
}

bool HeldCommands::conflicts(std::uint64_t stream, const Counts& others) const {
  if (others.empty()) return false;
  if (others.contains(stream)) return true;
  if (stream != ipc::kDefaultStream) {
    return others.contains(ipc::kDefaultStream) && blocking_(stream);
  }
  return std::ranges::any_of(others, [&](const auto& other) { return blocking_(other.first); });
}

void HeldCommands::hold(std::uint64_t stream, std::uint64_t position) {
  held_.add(stream);
  positions_.insert(position);
}

void HeldCommands::release(std::uint64_t stream, std::uint64_t position) {
  held_.remove(stream);
  const auto found = positions_.find(position);
  SLATE_CHECK(found != positions_.end());
  positions_.erase(found);
}

bool HeldCommands::waits(const Needs& needs, std::uint64_t position, const Summary& earlier) const {
  if (!needs.any()) return false;
  if (needs.room) return earlier.frees > 0;
  // A program of which some stream is held at any time must not wait for ever.
  if (needs.all) {
    const bool held = !positions_.empty() && *positions_.begin() < position;
    return held || !earlier.streams.empty();
  }
  if (needs.event != 0) {
    if (earlier.writers.contains(needs.event)) return true;
    if (needs.writes && earlier.readers.contains(needs.event)) return true;
  }
  return needs.stream &&
         (conflicts(*needs.stream, held_) || conflicts(*needs.stream, earlier.streams));
}

bool HeldCommands::must_wait(const Command& command) const {
  constexpr auto kLast = std::numeric_limits<std::uint64_t>::max();
  if (nothing_waits()) return false;
  const Needs needs = needs_of(command);
  return waits(needs, kLast, summary_) || (needs.is_work() && full_());
}

Result<void> HeldCommands::keep(Kept kept) {
  Needs needs = needs_of(kept.command);
  if (kept.recording) needs.event = 0;  // the event itself may be recorded anew
  return add(std::move(kept), needs);
}

Result<void> HeldCommands::keep_for_room(Kept kept) {
  return add(std::move(kept), {{.only_waits = true}, true});
}

Result<void> HeldCommands::add(Kept kept, const Needs& needs) {
  kept.command.body.shrink_to_fit();  // it may have the room of a larger one before it
  bytes_ += kept.command.body.size();
  if (kept_.size() >= kMostCommands || bytes_ > kMostBytes) {
    return fail(ErrorCode::kLimit, "too many commands wait behind a host function or a kernel");
  }
  summary_.add(needs);
  waits_only_ += needs.only_waits ? 1 : 0;
  kept_.push_back({std::move(kept), needs});
  return {};
}

/// Whatever is kept is work on streams that are held, so that nobody has to look at each.
bool HeldCommands::all_are_held() const {
  return waits_only_ == 0 && summary_.readers.empty() && summary_.writers.empty() &&
         std::ranges::all_of(summary_.streams,
                             [&](const auto& entry) { return conflicts(entry.first, held_); });
}

bool HeldCommands::drain(const std::function<bool(const Kept&)>& serve) {
  Summary skipped;
  for (auto entry = kept_.begin(); entry != kept_.end();) {
    if (waits(entry->needs, entry->kept.position, skipped) || (entry->needs.is_work() && full_())) {
      if (skipped.streams.empty() && all_are_held()) return true;
      skipped.add(entry->needs);
      ++entry;
      continue;
    }
    const Entry next = std::move(*entry);
    entry = kept_.erase(entry);
    summary_.remove(next.needs);
    waits_only_ -= next.needs.only_waits ? 1 : 0;
    bytes_ -= next.kept.command.body.size();
    if (!serve(next.kept)) return false;
  }
  return true;
}

void HeldCommands::give_up(const std::function<void(const Command&)>& drop) {
  for (const Entry& entry : kept_) drop(entry.kept.command);
  kept_.clear();
  summary_ = {};
  waits_only_ = 0;
  bytes_ = 0;
}

}  // namespace slate::daemon
