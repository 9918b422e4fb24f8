// Departure: whether a session is to leave its engine for another one, and how far that is. Plain
// state: the session acts on it. Thread-safe.
#pragma once

#include <atomic>

namespace slate::daemon {

class Departure {
 public:
  enum class State {
    kHere,       // the session is served
    kUndecided,  // the session takes no more commands until the supervisor has decided
    kWanted,     // the session is to leave once none of its work is under way
    kLeft,       // the session is not served here any more
  };

  State state() const { return state_.load(std::memory_order_acquire); }
  bool is_wanted() const { return state() == State::kWanted; }
  bool is_undecided() const { return state() == State::kUndecided; }

  // Each says whether the state has changed.
  /// The supervisor wants the session to leave. `to_host`: with its device memory.
  bool want(bool to_host) {
    to_host_.store(to_host);
    return go(State::kHere, State::kWanted) || go(State::kUndecided, State::kWanted);
  }
  bool is_to_host() const { return to_host_.load(); }
  /// The session waits for the supervisor's word.
  bool ask() { return go(State::kHere, State::kUndecided); }
  /// The supervisor lets the session stay.
  bool stay() { return go(State::kUndecided, State::kHere); }
  /// The session cannot leave.
  bool give_up() { return go(State::kWanted, State::kHere); }
  /// The session has left.
  bool leave() { return go(State::kWanted, State::kLeft); }

 private:
  bool go(State from, State to) { return state_.compare_exchange_strong(from, to); }

  std::atomic<State> state_{State::kHere};
  std::atomic<bool> to_host_{false};
};

}  // namespace slate::daemon
