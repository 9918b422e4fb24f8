#include "daemon/engine/blocking_watch.h"

#include <algorithm>
#include <limits>

namespace slate::daemon {
namespace {

using scheduler::Milliseconds;
using scheduler::Time;

/// Since when `waiting` is kept waiting by `holder`; none: it is not, as far as is known for sure.
/// `top`: the highest priority of all sessions that have or want something.
std::optional<Time> kept_since(const SessionUse& waiting, const SessionUse& holder, int top) {
  if (waiting.stalled_since) return std::max(*waiting.stalled_since, *holder.holds_since);
  if (waiting.waits_since) {
    const bool by_policy = waiting.waits_for.empty();
    const bool meant =
        std::ranges::find(waiting.waits_for, holder.session) != waiting.waits_for.end();
    // A policy lets higher priorities go first, and waits for nothing that leaves room.
    if (by_policy ? waiting.priority < top || holder.leaves_room : !meant) return std::nullopt;
    return std::max(*waiting.waits_since, *holder.holds_since);
  }
  // Beside others' work: only what is known to take a moment shows that it does not get on.
  if (!waiting.holds_since || waiting.expected.count() <= 0) return std::nullopt;
  if (*waiting.holds_since < *holder.holds_since) return std::nullopt;
  if (!waiting.placement.overlaps(holder.placement)) return std::nullopt;
  return *waiting.holds_since;
}

/// The least time after which that counts as too long.
Milliseconds bound_of(const SessionUse& waiting, const SessionUse& holder) {
  const Milliseconds bound(holder.most_blocking);
  if (waiting.waits_since || waiting.stalled_since) return bound;
  return std::max(bound, waiting.expected * BlockingWatch::kStarved);
}

}  // namespace

bool BlockingWatch::is_needed(std::span<const SessionUse> sessions) {
  return std::ranges::any_of(
      sessions, [&](const SessionUse& each) { return each.uid != sessions.front().uid; });
}

std::vector<BlockingWatch::Verdict> BlockingWatch::look(Time now,
                                                        std::span<const SessionUse> sessions) {
  std::erase_if(told_, [&](const auto& each) {
    return std::ranges::find(sessions, each.first, &SessionUse::session) == sessions.end();
  });
  int top = std::numeric_limits<int>::min();
  for (const SessionUse& each : sessions) {
    if (each.holds_since || each.waits_since) top = std::max(top, each.priority);
  }
  std::vector<Verdict> verdicts;
  for (const SessionUse& holder : sessions) {
    // A session that waits itself is not the one to be blamed.
    if (!holder.holds_since || holder.waits_since || holder.most_blocking.count() == 0) continue;
    const auto told = told_.find(holder.session);
    if (told != told_.end() && (told->second.stays || now < told->second.at + kGrace)) continue;
    std::optional<Verdict> worst;
    for (const SessionUse& waiting : sessions) {
      if (waiting.uid == holder.uid) continue;
      const auto since = kept_since(waiting, holder, top);
      if (!since || Milliseconds(now - *since) < bound_of(waiting, holder)) continue;
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since);
      if (worst && worst->waited >= waited) continue;
      worst = Verdict{.session = holder.session,
                      .waiting = waiting.session,
                      .waited = waited,
                      .stays = told != told_.end()};
    }
    if (!worst) continue;
    told_[holder.session] = {.at = now, .stays = worst->stays};
    verdicts.push_back(std::move(*worst));
  }
  return verdicts;
}

}  // namespace slate::daemon
