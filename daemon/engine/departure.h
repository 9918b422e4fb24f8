// Departure: whether a session is to leave its engine for another one, how far that is, and how it
// is done. Session thread, but for what says otherwise.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "daemon/book.h"
#include "daemon/engine/commands/faults.h"
#include "daemon/engine/commands/session_parts.h"
#include "daemon/engine/session_hooks.h"
#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

class Departure {
 public:
  enum class State {
    kHere,       // the session is served
    kUndecided,  // the session takes no more commands until the supervisor has decided
    kWanted,     // the session is to leave as Wish says, once none of its work is under way
    kLeft,       // the session is not served here any more
  };
  /// All of it outlives the departure.
  struct Context {
    std::uint64_t session;  // its number
    const SessionHooks& hooks;
    device::Device& device;
    ipc::EngineChannel& channel;
    Faults& faults;
    SessionParts& parts;
    Book* book;  // null: no other engine can go on with the session
    std::function<bool()> is_over;
    std::function<bool()> release_held;  // as CommandServer::release_held()
    std::function<bool()> finish_work;   // as MemoryGate::Ground::finish_work
    std::function<SessionStatus()> status;
  };

  explicit Departure(Context context) : of_(std::move(context)) {}

  // Any thread.
  /// What is wanted of a session that is to leave.
  struct Wish {
    bool to_host = false;    // its device memory goes to the host, where the supervisor holds it
    bool when_idle = false;  // it is served until a moment at which none of its work is under way
  };
  /// The supervisor wants the session to leave. The last wish counts.
  void want(Wish wish);
  /// The supervisor lets the session stay that waits for its word.
  void stay();
  bool is_wanted() const { return state() == State::kWanted; }
  bool is_undecided() const { return state() == State::kUndecided; }
  /// Whether the session's thread may take the next command.
  bool serves() const { return state() == State::kHere || (is_wanted() && when_idle_.load()); }
  bool has_left() const { return state() == State::kLeft; }
  /// Whether SessionHooks::left was called, or was to be.
  bool has_told() const { return has_left() && !to_host_.load(); }
  /// Why the session cannot go on in another engine; nullopt: it can. Then freeze() it before this
  /// engine ends.
  std::optional<std::string> why_bound() const;
  /// The client hears nothing more from this engine, and its book gets nothing more.
  void freeze();

  /// True: the session has left, and another engine may go on with it at once. One that cannot
  /// leave calls SessionHooks::stays. Requires: is_wanted().
  bool try_to_leave();
  /// The same of a session that has not begun. False also: it is not wanted, or its memory is to be
  /// saved first.
  bool leave_unbegun();
  /// Whether the session waits for the supervisor's word, as a module comes that cannot be fenced.
  bool leaves_first();

 private:
  State state() const { return state_.load(std::memory_order_acquire); }
  /// Whether the state has changed.
  bool go(State from, State to) { return state_.compare_exchange_strong(from, to); }
  bool stay_here(const std::string& why);
  bool finish_work();
  bool is_idle();

  const Context of_;
  std::atomic<State> state_{State::kHere};
  std::atomic<bool> to_host_{false}, when_idle_{false};  // as in Wish
  bool told_unfenced_ = false;  // whether SessionHooks::unfenced was called
};

}  // namespace slate::daemon
