// ControlDesk: answers slatectl. A control connection is opened like a session. It asks one
// question, gets one JSON text or the reason for none, and is closed. A slow or silent connection
// is dropped at its deadline. A user has only so many at a time. Requests that need the
// administrator are refused here. Supervisor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/supervisor/domain.h"
#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"
#include "ipc/meeting.h"

namespace slate::daemon {

class ControlDesk {
 public:
  struct Services {
    /// Makes the status text for user `asker` from the engines' reports. An engine may have given
    /// none.
    std::function<std::string(const std::vector<std::string>& reports, std::uint32_t asker)>
        describe;
    /// Whether user `asker` may see profiles of kernels.
    std::function<bool(std::uint32_t asker)> shows_profiles;
    /// Serves the verbs of `slatectl set` for user `asker`.
    std::function<Result<std::string>(const ipc::ControlRequest& request, const std::string& text,
                                      std::uint32_t asker)>
        change;
    /// Serves `slatectl end`, `suspend` and `resume` for user `asker`.
    std::function<Result<std::string>(ipc::ControlVerb verb, const std::string& text,
                                      std::uint32_t asker)>
        change_sessions;
    /// Serves `slatectl renew` and `upgrade`.
    std::function<Result<std::string>(ipc::ControlVerb verb)> renew;
  };

  /// Connections of one user at a time.
  static constexpr int kMostOfUser = 16;

  explicit ControlDesk(Services services) : services_(std::move(services)) {}

  void greet(ipc::Visitor visitor);
  /// Whether a question is being asked or answered.
  bool has_guests() const { return !connections_.empty(); }
  void add_to(PollSet& polls) const;
  /// Engines that can be asked, the common one first.
  using Asked = std::vector<std::pair<Domain, EngineProcess*>>;
  /// Reads requests, passes them on, and writes answers. A status asks all engines, other requests
  /// the common one.
  void service(const Asked& engines);
  /// Takes a piece of the answer of the engine with this serial number.
  void report_came(std::uint64_t engine, const LinkMessage& message);
  /// The engine will not answer any more.
  void engine_died(std::uint64_t engine);

 private:
  enum class State { kAsking, kWaiting, kAnswering };
  struct Connection {
    State state = State::kAsking;
    ipc::Visitor visitor;
    Clock::time_point deadline;
    ipc::ControlVerb verb{};
    std::uint64_t request = 0;
    std::map<std::uint64_t, std::string> reports;  // what has come, by the engine's serial number
    std::set<std::uint64_t> waits_for;             // engines whose reports are not complete
    std::string output;
    std::size_t written = 0;  // bytes of output that were written
  };

  bool service_one(Connection& connection, const Asked& engines);
  bool read_request(Connection& connection, const Asked& engines);
  void serve(Connection& connection, const ipc::ControlRequest& request, const std::string& text,
             const Asked& engines);
  void ask(Connection& connection, LinkHeader question, const std::string& text,
           const Asked& engines);
  void reports_are_there(Connection& connection);
  void answer(Connection& connection, const Result<std::string>& result);
  bool write_output(Connection& connection);

  const Services services_;
  std::list<Connection> connections_;
  std::uint64_t next_request_ = 1;
};

}  // namespace slate::daemon
