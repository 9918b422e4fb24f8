// ControlDesk: answers slatectl. A control connection is opened like a session. It asks one
// question, gets one JSON text or the reason for none, and is closed. A slow or silent connection
// is dropped at its deadline. A user has only so many at a time. Requests that need the
// administrator are refused here. Supervisor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"
#include "ipc/meeting.h"

namespace slate::daemon {

class ControlDesk {
 public:
  struct Services {
    /// Makes the status text for user `asker` from the engine's report; empty: the engine gave
    /// none.
    std::function<std::string(const std::string& engine_report, std::uint32_t asker)> describe;
    /// Whether user `asker` may see profiles of kernels.
    std::function<bool(std::uint32_t asker)> shows_profiles;
    /// Serves the verbs of `slatectl set` for user `asker`.
    std::function<Result<std::string>(const ipc::ControlRequest& request, const std::string& text,
                                      std::uint32_t asker)>
        change;
    /// Serves `slatectl end` for user `asker`.
    std::function<Result<std::string>(const std::string& text, std::uint32_t asker)> end;
  };

  /// Connections of one user at a time.
  static constexpr int kMostOfUser = 16;

  explicit ControlDesk(Services services) : services_(std::move(services)) {}

  void greet(ipc::Visitor visitor);
  void add_to(PollSet& polls) const;
  /// Reads requests, passes them to `engine` (may be null), and writes answers.
  void service(EngineProcess* engine);
  /// Takes a piece of the engine's answer.
  void report_came(const LinkMessage& message);
  /// The engine will not answer any more.
  void engine_died();

 private:
  enum class State { kAsking, kWaiting, kAnswering };
  struct Connection {
    State state = State::kAsking;
    ipc::Visitor visitor;
    Clock::time_point deadline;
    ipc::ControlVerb verb{};
    std::uint64_t request = 0;
    std::string report;
    std::string output;
    std::size_t written = 0;  // bytes of output that were written
  };

  bool service_one(Connection& connection, EngineProcess* engine);
  bool read_request(Connection& connection, EngineProcess* engine);
  void serve(Connection& connection, const ipc::ControlRequest& request, const std::string& text,
             EngineProcess* engine);
  void ask_engine(Connection& connection, LinkHeader question, const std::string& text,
                  EngineProcess* engine);
  void no_report(Connection& connection);
  void answer(Connection& connection, const Result<std::string>& result);
  bool write_output(Connection& connection);

  const Services services_;
  std::list<Connection> connections_;
  std::uint64_t next_request_ = 1;
};

}  // namespace slate::daemon
