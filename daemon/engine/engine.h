// Engine: one device and the sessions on it, in a process of its own. Its control thread (run())
// reads the supervisor's messages; every session has a thread; one Completer serves them all. The
// process ends with the supervisor, or when the device is lost: nothing here outlives a fault.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/engine/call_counts.h"
#include "daemon/engine/compiler.h"
#include "daemon/engine/profile_keeper.h"
#include "daemon/engine/session.h"
#include "daemon/engine_link.h"

namespace slate::daemon {

/// Names of the kernels that may be running, by session.
using RunningKernels = std::map<std::uint64_t, std::vector<std::string>>;
/// What a fault of the device, while these ran, means to one session: "; by its own kernel K", or
/// another program's, or either; nothing when none is known. Session 0 is nobody: all are listed.
std::string cause_for(std::uint64_t session, const RunningKernels& kernels);

struct EngineSettings {
  std::chrono::milliseconds kill_grace{60'000};
  bool kill_stuck_engine = false;
  /// How long sessions may take to end after kStop.
  std::chrono::milliseconds stop_grace{3'000};
  /// Where compiled code is kept, and the most bytes of it; 0: nowhere.
  std::filesystem::path cache_directory;
  std::uint64_t cache_bytes = 0;
  std::string assembler;  // as in device::OpenSettings
  FormChoice form = FormChoice::kAuto;
  std::string policy = "adaptive";  // one of scheduler::policy_names()
  scheduler::Settings scheduler;
  std::size_t trace_events = 0;           // the most that are kept; 0: no trace
  std::filesystem::path state_directory;  // of what is known of kernels; empty: nothing is kept
  /// Ends the process at once, without destructors: other threads still run. Tests put something
  /// gentler here.
  std::function<void(int)> exit_now = [](int status) { std::_Exit(status); };
};

class Engine {
 public:
  Engine(std::unique_ptr<device::Device> device, EngineLink link, EngineSettings settings);
  /// Requires: run() has returned 0, or was never called.
  ~Engine();

  /// Tells the supervisor that it is ready, and serves. Returns 0 when every session ended after a
  /// kStop; otherwise the process should end at once (exit_now) with the status returned.
  int run();

 private:
  struct Running {
    std::unique_ptr<Session> session;
    std::thread thread;
  };

  bool read_messages();
  void handle(LinkMessage message);
  void add_session(LinkMessage message);
  void begin_session(std::unique_ptr<Session> session);
  void send_status(std::uint64_t request);
  void send_trace(std::uint64_t request, std::uint64_t microseconds);
  void answer_profile(std::uint64_t request, const std::string& text);
  void stop_sessions(const std::string& reason);
  void join_finished();
  void refuse(std::uint64_t session, const std::string& reason);
  void session_finished(std::uint64_t session);
  void device_lost(const Error& fault);
  void session_stuck(std::uint64_t session);
  void end_process(Error fault, const RunningKernels& kernels);

  const EngineSettings settings_;
  const std::unique_ptr<device::Device> device_;
  Compiler compiler_;
  FormMaker form_maker_;
  FormService forms_;
  CallCounts unsupported_calls_;
  const std::shared_ptr<Exports> exports_ = std::make_shared<Exports>();
  const std::shared_ptr<NamedBudget> named_memory_ =
      std::make_shared<NamedBudget>(NamedBudget::bytes_for(StagingBudget::shared_memory_bytes()));
  const std::shared_ptr<StagingBudget> staging_ = std::make_shared<StagingBudget>(
      StagingBudget::slots_for(StagingBudget::shared_memory_bytes()));
  const EngineLink link_;
  Completer completer_;
  Trace trace_;
  Executor executor_;
  ProfileKeeper profiles_;
  UniqueFd wake_;                              // eventfd: a session has finished
  std::mutex mutex_;                           // guards sessions_ (the map), finished_
  std::map<std::uint64_t, Running> sessions_;  // changed by the control thread only
  std::vector<std::uint64_t> finished_;
  std::uint64_t faults_ = 0;
  std::atomic<bool> ending_{false};
  bool stopping_ = false;
  std::chrono::steady_clock::time_point stop_deadline_;
};

/// The whole life of an engine process: opens the device, serves, does not return before the end.
int run_engine(const std::string& device, int control_fd, int parent_pid, EngineSettings settings);

}  // namespace slate::daemon
