// Session: one client as the engine serves it. run() is the body of the session's thread: it pops
// commands from the channel, checks them, and hands work to the device; nothing in it waits for
// that work. The handlers of the commands are spread over session_*.cc by topic.
//
// What a client can do wrong ends here: a bad argument is that command's error, a broken protocol
// ends the session, a fault in a kernel makes its error stick to this session only.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/completer.h"
#include "daemon/engine/executor.h"
#include "daemon/engine/held_commands.h"
#include "daemon/engine/host_blocks.h"
#include "daemon/engine/imports.h"
#include "daemon/engine/memory_manager.h"
#include "daemon/engine/module_store.h"
#include "daemon/engine/object_table.h"
#include "daemon/engine/retirement.h"
#include "daemon/engine/small_copies.h"
#include "daemon/engine/staging.h"
#include "daemon/engine/stream_table.h"
#include "device/device.h"
#include "ipc/channel.h"

namespace slate::daemon {

struct SessionSpec {
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::string program;
  std::uint64_t memory_limit = 0;
  double weight = 1;
  int priority = 0;
  ipc::SessionFifos fifos;
  ipc::Segment segment;
  /// Shared with the other sessions; null: it has one to itself.
  std::shared_ptr<StagingBudget> staging{};
  std::shared_ptr<Exports> exports{};           // likewise
  std::shared_ptr<NamedBudget> named_memory{};  // likewise
};

enum class SessionPhase { kStarting, kServing, kFailed, kDraining };
std::string_view phase_name(SessionPhase phase);

/// For `slatectl status`.
struct SessionStatus {
  std::uint64_t id;
  SessionPhase phase;
  std::uint64_t memory_used, memory_limit;
  std::uint64_t launches, launches_running;
  std::uint64_t copies, bytes_to_device, bytes_to_host;
  std::uint64_t streams, modules;
};

/// What a session tells its engine. Called from any thread.
struct SessionHooks {
  /// The device is lost: does not return in the daemon.
  std::function<void(const Error& fault)> device_lost;
  /// The client is gone, and its work did not end within the grace time.
  std::function<void(std::uint64_t session)> stuck;
  /// The client called a function that slate does not have. May be empty.
  std::function<void(std::string_view function)> unsupported = {};
};

class Session {
 public:
  static constexpr std::size_t kMostEvents = 65536;
  /// Ends of work that are waited for at a time, as records of events make them: beyond it the
  /// session takes no more commands until half of them have come, or, while host functions run,
  /// keeps those that are more work.
  static constexpr std::uint64_t kMostWatches = 16384;
  /// How long staging memory is kept after the last copy.
  static constexpr std::chrono::milliseconds kStagingIdle{2000};

  /// All that it refers to outlives it. `kill_grace`: how long its work may go on
  /// after the client left.
  Session(device::Device& device, Compiler& compiler, Executor& executor, Completer& completer,
          SessionSpec spec, SessionHooks hooks, std::chrono::milliseconds kill_grace);
  /// Requires: run() has returned, or was never called.
  ~Session();

  /// Serves until the client is gone, breaks the protocol or stop() is called; then frees
  /// everything. Called once, on the session's own thread.
  void run();

  // Any thread.
  /// Ends the session; the client sees `reason`.
  void stop(std::string_view reason);
  /// Makes `fault` stick: its work is dropped and every later command gets it. The first one
  /// counts.
  void fail(Error fault);
  SessionStatus status() const;
  /// Names of the kernels that may be running, as "kernel (program, pid 12)".
  std::vector<std::string> running_kernels() const;
  std::uint64_t id() const { return spec_.id; }
  bool faulted() const { return failed_.load(); }
  /// A command of it was taken: from then on it cannot move to another engine.
  bool begun() const { return begun_.load(); }

 private:
  struct EventRecord {
    bool timing = true;
    std::shared_ptr<SharedEvent> event;              // null before the first record
    std::shared_ptr<SharedRecord> shared = nullptr;  // with other sessions, whose records count too
  };

  Result<void> set_up();
  void serve();
  bool is_crowded() const;
  ipc::EngineChannel::Seen look(bool waits);
  void end(const Error& error);
  bool serve_command(ipc::Command& command);
  bool keep(ipc::Command& command);
  bool release_held();
  bool end_unless(const Result<void>& kept);
  bool carry_out(const HeldCommands::Kept& kept);
  bool carry_out(const ipc::Command& command, std::uint64_t position);
  /// What the dispatcher knows of the command that is carried out.
  struct Present {
    LogicalStream* stream = nullptr;  // null: the command is about none
    Reply reply;
  };
  Result<void> handle(const ipc::Command& command, Present& present);
  template <typename Row>
  Result<void> dispatch(const ipc::Command& command, Present& present);
  template <typename Row>
  void give_slot_back(const ipc::Command& command, const Error& error);
  void answer_failed(const ipc::Command& command);
  void tear_down();
  bool lost_client();
  void wait_for_work();
  void on_device_error(const Error& error);
  /// Passes `result` on, after failing the session when its error is a fault.
  Result<void> checked(Result<void> result);
  Error sticky_error() const;

  // session_module.cc
  Result<void> on(const Call<ipc::CommandType::kModuleLoad>& call);
  Result<void> on(const Call<ipc::CommandType::kModuleUnload>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionGet>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionParameters>& call);
  Result<void> on(const Call<ipc::CommandType::kFunctionSetShared>& call);
  Result<void> on(const Call<ipc::CommandType::kVariablePlace>& call);
  Result<void> on(const Call<ipc::CommandType::kGlobalGet>& call);
  Result<void> on(const Call<ipc::CommandType::kLimitRaise>& call);
  // session_memory.cc
  Result<void> on(const Call<ipc::CommandType::kMemoryAllocate>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryFree>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryInfo>& call);
  Result<void> on(const Call<ipc::CommandType::kHostAllocate>& call);
  Result<void> on(const Call<ipc::CommandType::kHostMapped>& call);
  Result<void> on(const Call<ipc::CommandType::kHostFree>& call);
  template <typename Make>
  std::invoke_result_t<Make> when_there_is_room(const Make& make);
  // session_object.cc
  Result<void> on(const Call<ipc::CommandType::kArrayCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kArrayDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kTextureCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kTextureDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kSurfaceCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kSurfaceDestroy>& call);
  Result<void> finish_later(Result<ObjectTable::Ticket> ticket);
  // session_box.cc
  Result<void> on(const Call<ipc::CommandType::kCopyBox>& call);
  Result<void> on(const Call<ipc::CommandType::kStagedBox>& call);
  Result<device::Place> place_of(const ipc::BoxPlace& place, device::Box box) const;
  Result<device::Place> place_in_array(const ipc::BoxPlace& place, device::Box box) const;
  // session_stream.cc
  Result<void> on(const Call<ipc::CommandType::kStreamCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kStreamDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kEventCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kEventDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kEventRecord>& call);
  Result<void> on(const Call<ipc::CommandType::kStreamWaitEvent>& call);
  Result<void> on(const Call<ipc::CommandType::kEventElapsed>& call);
  Result<void> on(const Call<ipc::CommandType::kQuery>& call);
  Result<void> on(const Call<ipc::CommandType::kSynchronize>& call);
  Result<EventRecord*> find_event(std::uint64_t id);
  Result<void> renew(EventRecord& record);
  Result<std::vector<LogicalStream*>> streams_of(const ipc::Target& target);
  Result<bool> is_finished(const ipc::Target& target);
  Result<void> synchronize_event(const ipc::CommandHeader& header, std::uint64_t id, Reply& reply);
  Completer::Callback answer_when(const ipc::CommandHeader& header, std::size_t count);
  // session_share.cc
  Result<void> on(const Call<ipc::CommandType::kMemoryExport>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryImport>& call);
  Result<void> on(const Call<ipc::CommandType::kMemoryImportClose>& call);
  Result<void> on(const Call<ipc::CommandType::kEventExport>& call);
  Result<void> on(const Call<ipc::CommandType::kEventImport>& call);
  // session_copy.cc
  Result<void> on(const Call<ipc::CommandType::kCopyToDevice>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyToHost>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyInline>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyPinned>& call);
  Result<void> on(const Call<ipc::CommandType::kCopyOnDevice>& call);
  Result<void> on(const Call<ipc::CommandType::kFill>& call);
  Result<void> staged_copy(const ipc::StagedCopy& copy, LogicalStream& target, bool to_device);
  /// A copy through a staging slot of the segment.
  struct SlotUse {
    std::uint32_t slot, offset;
    std::uint64_t sequence;
    LogicalStream& stream;
    bool to_device;
    std::uint64_t bytes;  // packed; 0: nothing to do
  };
  /// Submits the device's copy between the slot's memory and its own.
  using SlotCopy = std::function<Result<void>(std::byte* host, device::Stream stream)>;
  Result<void> use_slot(const SlotUse& use, const SlotCopy& copy);
  /// An error only if nothing was submitted: the slot may be told finished then.
  Result<void> submit_slot(const SlotUse& use, const SlotCopy& copy);
  Result<void> check_range(std::uint64_t address, std::uint64_t pitch, std::uint64_t width,
                           std::uint64_t height) const;
  void count_copy(bool to_device, std::uint64_t bytes);
  // session_host.cc
  Result<void> on(const Call<ipc::CommandType::kHostGate>& call);
  Result<void> on(const Call<ipc::CommandType::kHostDone>& call);
  // session_report.cc
  Result<void> on(const Call<ipc::CommandType::kUnsupportedCall>& call);
  // session_launch.cc
  Result<void> on(const Call<ipc::CommandType::kLaunch>& call);
  Result<void> on(const Call<ipc::CommandType::kClusterQuery>& call);

  device::Device& device_;
  Executor& executor_;
  Completer& completer_;
  SessionSpec spec_;  // fifos and segment moved to channel_
  const SessionHooks hooks_;
  const std::chrono::milliseconds kill_grace_;
  ipc::EngineChannel channel_;
  Completer::Group group_;

  mutable std::mutex sticky_mutex_;
  Error sticky_{ErrorCode::kNone, {}};
  std::atomic<bool> failed_{false};
  std::atomic<bool> begun_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> ending_{false};  // nothing more of it is carried out, and no error counts
  std::int64_t looked_ns_ = 0;       // when lost_client() last asked
  std::atomic<SessionPhase> phase_{SessionPhase::kStarting};
  std::atomic<std::uint64_t> copies_{0};
  std::atomic<std::uint64_t> bytes_to_device_{0};
  std::atomic<std::uint64_t> bytes_to_host_{0};

  StreamTable streams_;
  const std::shared_ptr<Executor::Client> client_;
  Retirement retirement_;
  struct Hold {
    std::uint64_t stream;
    std::uint64_t position;  // of the command that holds it
  };
  std::unordered_map<std::uint64_t, Hold> gates_;  // closed ones, by ticket
  std::vector<Hold> in_lanes_;  // streams held by a launch that can be called back
  HeldCommands held_;
  bool released_ = false;  // since the last release_held()
  /// Of the kept wait for an event that is carried out just now (Kept::recording).
  std::optional<std::shared_ptr<SharedEvent>> waited_for_;
  ModuleStore modules_;
  std::shared_ptr<MemoryManager> memory_;  // null until set_up(); then constant
  std::atomic<MemoryManager*> memory_seen_{nullptr};
  std::optional<ObjectTable> objects_;  // likewise
  std::unordered_map<std::uint64_t, EventRecord> events_;
  /// Events of records that were made anew, to be used again when nobody waits for them any more.
  std::deque<std::shared_ptr<SharedEvent>> replaced_events_[2];  // by timing
  const std::shared_ptr<StagingBudget> budget_;
  Staging staging_;
  std::optional<SmallCopies> small_copies_;
  const std::shared_ptr<NamedBudget> named_memory_;
  HostBlocks host_blocks_;
  const std::shared_ptr<Exports> exports_;
  Imports imports_;
};

/// Makes something that takes memory. Frees that wait for running work may make room for it; the
/// last of them may have ended just now. So may the slack, as long as nothing can use it.
template <typename Make>
std::invoke_result_t<Make> Session::when_there_is_room(const Make& make) {
  auto made = make();
  bool more_may_come = true;
  while (more_may_come && !made && made.error().code == ErrorCode::kOutOfMemory &&
         !failed_.load() && !stopping_.load() && !channel_.peer_is_gone()) {
    more_may_come = memory_->wait_for_free(std::chrono::milliseconds(100));
    made = make();
  }
  if (!made && made.error().code == ErrorCode::kOutOfMemory &&
      streams_.unfinished(nullptr).empty() && memory_->drop_slack()) {
    made = make();
  }
  return made;
}

}  // namespace slate::daemon
