// Engine: one device and the sessions on it, in a process of its own. Its control thread (run())
// reads the supervisor's messages. Every session has a thread. One Completer serves them all.
// The process ends with the supervisor, or when the device is lost: no engine outlives a fault.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "daemon/config.h"
#include "daemon/engine/call_counts.h"
#include "daemon/engine/compiler.h"
#include "daemon/engine/earlier_launches.h"
#include "daemon/engine/fence_memory.h"
#include "daemon/engine/image_store.h"
#include "daemon/engine/local_memory.h"
#include "daemon/engine/profile_keeper.h"
#include "daemon/engine/residency/residency.h"
#include "daemon/engine/resume_order.h"
#include "daemon/engine/session.h"
#include "daemon/engine/session_book.h"
#include "daemon/engine/stall_log.h"
#include "daemon/engine_link.h"

namespace slate::daemon {

/// Names of the kernels that may be running, by session.
using RunningKernels = std::map<std::uint64_t, std::vector<std::string>>;
/// What a fault of the device, while these kernels ran, means to one session: "; by its own kernel
/// K", or another program's, or either. Empty when none is known. For session 0 all kernels are
/// listed.
std::string cause_for(std::uint64_t session, const RunningKernels& kernels);

/// Ends the process at once, without destructors: other threads still run.
using ExitNow = std::function<void(int status)>;

class Engine {
 public:
  /// `readers`: how programs' code is read. Tests pass another `exit_now`.
  Engine(
      std::unique_ptr<device::Device> device, EngineLink link, Config config,
      ReaderSettings readers = {}, ExitNow exit_now = [](int status) { std::_Exit(status); });
  /// Requires: run() has returned 0, or was never called.
  ~Engine();

  /// Tells the supervisor that it is ready, and serves. Returns 0 when every session ended after a
  /// kStop. Any other status: the process should end at once with it (exit_now).
  int run();

 private:
  /// How long a new session waits for others' kernels before the supervisor hears of it.
  static constexpr std::chrono::milliseconds kPatience{300};

  struct Running {
    std::unique_ptr<Session> session;
    std::thread thread;
    // Before it begins: sessions whose earlier launches it waits for, and since when.
    std::vector<std::uint64_t> waits_for{};
    std::chrono::steady_clock::time_point waits_since{};
  };

  SessionBook::Holder holder_of(std::uint64_t session);
  void wait_for_supervisor();
  bool read_messages();
  void handle(LinkMessage message);
  void add_session(LinkMessage message);
  void share_time(LinkMessage message);
  void begin_session(std::unique_ptr<Session> session, bool others_come);
  void send_status(std::uint64_t request);
  void send_trace(std::uint64_t request, std::uint64_t microseconds);
  void answer_profile(std::uint64_t request, const std::string& text);
  void stop_sessions(const std::string& reason);
  void end_session(std::uint64_t session, const std::string& reason);
  Session* find_session(std::uint64_t session);
  bool may_be_blocked() const;
  bool is_fenced() const;
  void watch_blocking();
  void watch_fence();
  bool count_users(bool others_come = false);
  std::vector<EarlierLaunches::Session> launchers() const SLATE_REQUIRES(mutex_);
  bool wait_for_earlier(Session& session);
  void add_waiting(std::vector<SessionUse>& uses);
  void end_blocker(const BlockingWatch::Verdict& verdict);
  void join_finished();
  void refuse(std::uint64_t session, const std::string& reason);
  void session_finished(std::uint64_t session);
  void device_lost(const Error& fault);
  void session_stuck(std::uint64_t session);
  void end_process(Error fault, const RunningKernels& kernels, std::uint64_t culprit = 0);

  const Config config_;
  const ExitNow exit_now_;
  const std::unique_ptr<device::Device> device_;
  // The device's memory, pinned host memory, and the engine's memory for code.
  MemoryLedger memory_, pinned_, code_;
  Compiler compiler_;
  FormMaker form_maker_;
  FormService forms_;
  CallCounts unsupported_calls_;
  const std::shared_ptr<Exports> exports_ = std::make_shared<Exports>();
  const std::shared_ptr<LocalMemory> local_;
  const std::shared_ptr<FenceMemory> fence_;  // null: no kernel is fenced
  const std::shared_ptr<ResumeOrder> order_ = std::make_shared<ResumeOrder>();
  const std::shared_ptr<StagingBudget> staging_ = std::make_shared<StagingBudget>();
  const std::shared_ptr<ImageStore> images_;
  const EngineLink link_;
  Completer completer_;
  Trace trace_;
  const std::shared_ptr<Residency> residency_;  // null: all memory is on the device
  Executor executor_;
  ProfileKeeper profiles_;
  StallLog stalls_;
  BlockingWatch blocking_;
  UniqueFd wake_;  // eventfd; readable: a session has finished
  Mutex mutex_;
  // Changed under the mutex by the control thread only, which reads it without.
  std::map<std::uint64_t, Running> sessions_;
  std::vector<std::uint64_t> finished_ SLATE_GUARDED_BY(mutex_);
  EarlierLaunches earlier_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t faults_ = 0;
  // What the supervisor has held for sessions that are about to come. Control thread.
  std::map<std::uint64_t, HeldMemory> held_;
  // Questions whether the supervisor has handled all that was sent before.
  Mutex fence_mutex_;
  CondVar fence_passed_;
  std::uint64_t fences_ SLATE_GUARDED_BY(fence_mutex_) = 0;
  std::uint64_t fences_answered_ SLATE_GUARDED_BY(fence_mutex_) = 0;
  std::atomic<bool> ending_{false};
  std::atomic<bool> ended_{false};  // whether exit_now_ has returned, in tests
  bool stopping_ = false;
  /// When the heap's free memory goes back if there is no session; none: nothing has ended since.
  std::optional<std::chrono::steady_clock::time_point> trim_at_;
  std::chrono::steady_clock::time_point stop_deadline_;
};

/// The folder of the compiled code.
std::filesystem::path cache_directory(const Config& config);

/// Runs an engine process: reads its configuration from the link, opens the device, and serves.
/// Returns at the process's end.
int run_engine();

}  // namespace slate::daemon
