// ControlDesk: answers slatectl. A control connection is opened like a session. It asks one
// question, gets one JSON text or the reason for none, and is closed. A slow or silent connection
// is dropped at its deadline.
// The owner of the FIFOs is the user that asks. Requests that need the administrator are refused
// here. Supervisor thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "daemon/supervisor/engine_process.h"
#include "daemon/supervisor/poll_set.h"
#include "ipc/rendezvous.h"

namespace slate::daemon {

class ControlDesk {
 public:
  struct Services {
    /// Makes the status text from the engine's report; empty: the engine gave none.
    std::function<std::string(const std::string& engine_report)> describe;
    /// Serves the verbs of `slatectl set` for user `asker`.
    std::function<Result<std::string>(const ipc::ControlRequest& request, const std::string& text,
                                      std::uint32_t asker)>
        change;
  };

  ControlDesk(std::string runtime_dir, Services services)
      : runtime_dir_(std::move(runtime_dir)), services_(std::move(services)) {}

  /// Whether a slatectl has this session directory.
  bool meets_in(const std::string& directory) const;
  void greet(const ipc::Hello& hello);
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
    ipc::SessionFifos fifos;
    std::string directory;
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

  const std::string runtime_dir_;
  const Services services_;
  std::list<Connection> connections_;
  std::uint64_t next_request_ = 1;
};

}  // namespace slate::daemon
