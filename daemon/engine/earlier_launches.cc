#include "daemon/engine/earlier_launches.h"

#include <algorithm>

namespace slate::daemon {

void EarlierLaunches::fence_came(Time now, std::span<const Session> sessions) {
  undecided_.clear();
  for (const Session& session : sessions)
    undecided_[session.id] = {.since = now, .bare_turn = std::nullopt};
}

std::vector<std::uint64_t> EarlierLaunches::of_others(uid_t uid, Time now,
                                                      std::span<const Session> sessions) {
  std::erase_if(undecided_, [&](const auto& each) {
    return std::ranges::find(sessions, each.first, &Session::id) == sessions.end();
  });
  std::vector<std::uint64_t> running;
  for (const Session& session : sessions) {
    if (session.uid != uid && may_run(session, now)) running.push_back(session.id);
  }
  return running;
}

bool EarlierLaunches::may_run(const Session& session, Time now) {
  if (const auto found = undecided_.find(session.id); found != undecided_.end()) {
    if (now < found->second.since + kSeen) return true;
    const std::uint64_t turn = session.launcher->bare_turn();
    std::optional<std::uint64_t>& first = found->second.bare_turn;
    if (!first) first = turn;
    if (turn != 0 && turn == *first) return true;
    session.launcher->mark_unfenced();
    undecided_.erase(found);
  }
  return session.launcher->runs_marked();
}

}  // namespace slate::daemon
