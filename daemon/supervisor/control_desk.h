// ControlDesk: answers slatectl. A control connection is opened like a session, asks one question,
// gets one JSON text, and is closed. Slow or silent ones are dropped at their deadline. Supervisor
// thread only.
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
  /// `describe` makes the status text from the engine's report, which is empty when it gave none.
  using Describe = std::function<std::string(const std::string& engine_report)>;

  ControlDesk(std::string runtime_dir, Describe describe)
      : runtime_dir_(std::move(runtime_dir)), describe_(std::move(describe)) {}

  void greet(const ipc::Hello& hello);
  void add_to(PollSet& polls) const;
  /// Reads requests, passes them to `engine` (may be null), writes what is due.
  void service(EngineProcess* engine);
  /// A piece of the engine's answer.
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
    std::uint64_t request = 0;
    std::string report;
    std::string output;
  };

  bool service_one(Connection& connection, EngineProcess* engine);
  bool read_request(Connection& connection, EngineProcess* engine);
  void answer(Connection& connection, const std::string& report);
  bool write_output(Connection& connection);

  const std::string runtime_dir_;
  const Describe describe_;
  std::list<Connection> connections_;
  std::uint64_t next_request_ = 1;
};

}  // namespace slate::daemon
