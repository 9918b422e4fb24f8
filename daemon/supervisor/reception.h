// Reception: takes in those who come to the meeting point, and hears what they want. A user has
// only so many visitors here at a time. Those beyond are told to come again, so that nobody keeps
// others out. Supervisor thread only.
#pragma once

#include <sys/types.h>

#include <functional>
#include <list>

#include "daemon/supervisor/poll_set.h"
#include "ipc/meeting.h"

namespace slate::daemon {

class Reception {
 public:
  /// What happens with a visitor who has said Hello.
  using Greet = std::function<void(const ipc::Hello& hello, ipc::Visitor visitor)>;
  /// Visitors of one user who have not said Hello yet.
  static constexpr int kMostOfUser = 32;

  Reception(ipc::MeetingPoint point, Greet session, Greet control)
      : point_(std::move(point)), session_(std::move(session)), control_(std::move(control)) {}

  const std::string& directory() const { return point_.directory(); }
  const ipc::MeetingPoint& point() const { return point_; }
  /// Whether visitors are there who have not said Hello.
  bool has_guests() const { return !guests_.empty(); }
  void add_to(PollSet& polls) const;
  /// Takes in who has come, and passes on who has said Hello. Drops the silent ones in time.
  void service();

 private:
  struct Guest {
    ipc::Visitor visitor;
    Clock::time_point deadline;
  };

  void take_in();
  bool listen_to(Guest& guest);

  ipc::MeetingPoint point_;
  const Greet session_, control_;
  std::list<Guest> guests_;
  Clock::time_point closed_until_{};  // end of a pause that lack of descriptors forced
};

/// Refuses the visitor behind a socket, for good or (`come_again`) for now.
void send_refusal(int socket, const Error& reason, bool come_again = false);

}  // namespace slate::daemon
