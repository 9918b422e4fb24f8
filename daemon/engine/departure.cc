#include "daemon/engine/departure.h"

#include <algorithm>

namespace slate::daemon {

void Departure::want(Wish wish) {
  to_host_.store(wish.to_host);
  when_idle_.store(wish.when_idle);
  (void)(go(State::kHere, State::kWanted) || go(State::kUndecided, State::kWanted));
  if (is_wanted()) of_.channel.poke();
}

void Departure::stay() {
  if (go(State::kUndecided, State::kHere)) of_.channel.poke();
}

std::optional<std::string> Departure::why_bound() const {
  if (of_.book == nullptr) return "it has no book";
  return of_.book->why_not();
}

void Departure::freeze() {
  of_.channel.freeze();
  if (of_.book != nullptr) of_.book->freeze();
}

/// A host function of the client's ends by a command, so that commands are taken until none is
/// under way.
bool Departure::try_to_leave() {
  if (!of_.parts.host_functions().none()) return false;
  if (when_idle_.load() && !is_idle()) return false;
  if (const auto why =
          of_.faults.failed() ? std::optional<std::string>("it has failed") : why_bound())
    return stay_here(*why);
  while (!finish_work()) {
    if (of_.is_over() || of_.faults.failed() || of_.device.lost() || of_.channel.peer_is_gone())
      return false;
  }
  of_.parts.events().settle_times();
  if (to_host_.load()) {
    if (const auto saved = of_.parts.save_memory(); !saved) return stay_here(saved.error().message);
  }
  freeze();
  const bool left = go(State::kWanted, State::kLeft);
  if (left && of_.hooks.left && !to_host_.load()) of_.hooks.left(of_.status());
  return left;
}

bool Departure::leave_unbegun() {
  if (!is_wanted() || to_host_.load()) return false;
  freeze();
  if (!go(State::kWanted, State::kLeft)) return false;
  if (of_.hooks.left) of_.hooks.left(of_.status());
  return true;
}

/// Tells why the session does not leave. Returns false.
bool Departure::stay_here(const std::string& why) {
  (void)go(State::kWanted, State::kHere);
  if (of_.hooks.stays) of_.hooks.stays(of_.session, why);
  return false;
}

/// Whether nothing of the session is left here, also of what waited. Waits a moment for that.
bool Departure::finish_work() {
  if (!of_.release_held()) return false;
  (void)of_.parts.go_on();
  return of_.finish_work() && !of_.parts.can_go_on() && of_.parts.host_functions().none();
}

/// Kernels may wait for what the client's next commands do, so that they must not be waited for.
bool Departure::is_idle() {
  StreamTable& streams = of_.parts.streams();
  return of_.parts.held().nothing_waits() &&
         std::ranges::all_of(streams.unfinished(nullptr), [&](LogicalStream* stream) {
           const auto done = streams.query(*stream);
           return done && *done;
         });
}

/// A module comes that cannot be fenced. With other users' sessions beside it the supervisor
/// decides first: a session that has loaded it may be bound to this engine.
bool Departure::leaves_first() {
  const SessionFence& fence = of_.parts.fence();
  const bool has_others = fence.is_on();
  if (!of_.hooks.unfenced || !fence.moves_unfenced() || (told_unfenced_ && !has_others))
    return false;
  const bool waits = has_others && !told_unfenced_ && !why_bound() &&
                     of_.parts.host_functions().none() && go(State::kHere, State::kUndecided);
  told_unfenced_ = true;
  of_.hooks.unfenced(of_.session, waits);
  return waits;
}

}  // namespace slate::daemon
