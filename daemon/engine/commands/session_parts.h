// SessionParts: the parts of one session, made and released in their order, and the dispatcher. The
// dispatcher parses a command, finds its stream, and passes both to the part that handles it.
// Session thread, unless a part says otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "daemon/engine/commands/array_commands.h"
#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/code_commands.h"
#include "daemon/engine/commands/command_reach.h"
#include "daemon/engine/commands/copy_commands.h"
#include "daemon/engine/commands/event_commands.h"
#include "daemon/engine/commands/host_function_commands.h"
#include "daemon/engine/commands/host_memory_commands.h"
#include "daemon/engine/commands/launch_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/owned_ranges.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/commands/report_commands.h"
#include "daemon/engine/commands/sharing_commands.h"
#include "daemon/engine/commands/stream_commands.h"
#include "daemon/engine/commands/virtual_commands.h"
#include "daemon/engine/session_hooks.h"
#include "daemon/engine/session_spec.h"
#include "ipc/channel.h"

namespace slate::daemon {

/// More than 15 members, because it is the list of the parts and of what they share.
class SessionParts {
 public:
  /// What the session gives its parts; all of it outlives them.
  struct Ground {
    device::Device& device;
    Compiler& compiler;
    Executor& executor;
    Completer& completer;
    Completer::Group& group;
    ipc::EngineChannel& channel;
    Faults& faults;
    std::function<bool()> is_crowded;   // whether streams may get no more work at present
    std::function<bool()> lost_client;  // cheap, as it is asked often
    std::function<bool()> is_over;      // as in PartContext
    std::function<void(std::string_view)> unsupported;
    std::function<bool()> leaves_first;  // as in PartContext
    std::function<bool(std::uint64_t, const std::function<void()>&)> with_free;  // the same
  };

  /// Keeps nothing of `spec`.
  SessionParts(const Ground& ground, const SessionSpec& spec);
  /// Requires: release() was called, or set_up() never was.
  ~SessionParts();
  SessionParts(const SessionParts&) = delete;
  SessionParts& operator=(const SessionParts&) = delete;

  /// To be called before the first command. `limit`: the most bytes of device memory. `account`:
  /// see MemoryManager::make().
  Result<void> set_up(std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
                      std::chrono::milliseconds wait = {});
  /// The same, where another engine has served the session: makes the objects of its book again.
  /// Errors: the first object that cannot be made; then release() is called as after set_up().
  Result<void> set_up_again(std::uint64_t limit, std::unique_ptr<MemoryLedger::Account> account,
                            std::chrono::milliseconds wait);
  /// Why the commands of the journal cannot be carried out again, as far as the other engine had
  /// begun them; nullopt: they can.
  std::optional<std::string> why_not_again(std::span<const Book::Open> commands);
  /// Takes away what was only kept for work that has ended by now.
  Result<void> go_on() {
    const auto ordered = context_.checked(retirement_.go_on());
    return ordered ? memory_.unmap_left() : ordered;
  }
  /// Whether kernels have to be fenced, and whether code that cannot be is to leave.
  const SessionFence& fence() const { return fence_; }
  bool can_go_on() const { return retirement_.can_go_on() || memory_.has_left(); }
  /// Copies all device memory to the host, where the supervisor holds it for the next engine; this
  /// one's memory is not held any more. After an error nothing has changed. Requires: no work of
  /// the session runs; it has a book.
  Result<void> save_memory();
  /// To be called behind the commands that are carried out again.
  Result<void> free_retired();
  /// Requires: no work of the session runs.
  void release();

  /// Has the command carried out by its part. `kept`: what was kept of it, or null. kProtocol for a
  /// command that breaks the protocol.
  Result<void> carry_out(const ipc::Command& command, const HeldCommands::Kept* kept,
                         Present& present);
  /// The row of the command's stream in the session's book; Book::kNoStream: none.
  std::uint32_t book_row_of(const ipc::Command& command);
  /// Gives back the staging slot of a command that is not carried out, if it holds one.
  void give_slot_back(const ipc::Command& command, ErrorCode reason);

  Executor::Client& client() { return *client_; }
  StreamTable& streams() { return streams_; }
  const StreamTable& streams() const { return streams_; }
  HeldCommands& held() { return held_; }
  const HeldCommands& held() const { return held_; }
  EventCommands& events() { return events_; }
  LaunchCommands& launches() { return launches_; }
  const LaunchCommands& launches() const { return launches_; }
  HostFunctionCommands& host_functions() { return host_functions_; }
  const HostFunctionCommands& host_functions() const { return host_functions_; }
  Staging& staging() { return staging_; }
  MemoryCommands& memory() { return memory_; }
  CommandReach& reach() { return reach_; }
  // Any thread.
  void look_at_fence() const { context_.look_at_fence(); }
  std::uint64_t memory_used() const { return memory_.charged(); }
  MemoryPlaces memory_places() const { return memory_.places(); }
  std::uint64_t pinned_used() const { return host_memory_.blocks().bytes(); }
  std::uint64_t code_memory() const { return code_.code_memory(); }
  std::uint64_t module_count() const { return code_.module_count(); }
  const CopyCommands::Counts& copies() const { return copies_.counts(); }

 private:
  template <typename Row>
  void write_down(const ipc::Command& command, const LogicalStream* stream, bool is_written);
  template <typename Row>
  std::uint32_t row_of_new(const typename Row::Body& body);
  template <typename Row>
  Result<void> dispatch(const ipc::Command& command, const HeldCommands::Kept* kept,
                        Present& present);
  Result<void> refuse(const std::optional<ipc::SlotTurn>& turn, const Result<void>& refused);
  Result<void> make_again(const Book::Key& key, const Book::Entry& entry);
  Result<void> load_again(std::uint64_t module, const BookImage& image);
  Result<void> carry_out_again(ipc::CommandType type, const Book::Entry& entry);

  StreamTable streams_;
  SessionFence fence_;
  const std::shared_ptr<Executor::Client> client_;
  Retirement retirement_;
  HeldCommands held_;
  const std::shared_ptr<StagingBudget> budget_;
  Staging staging_;
  const PartContext context_;
  MemoryCommands memory_;
  HostMemoryCommands host_memory_;
  CodeCommands code_;
  SharingCommands sharing_;
  VirtualCommands mapped_;
  const OwnedRanges ranges_;
  ArrayCommands arrays_;
  EventCommands events_;
  StreamCommands stream_commands_;
  CopyCommands copies_;
  CommandReach reach_;
  LaunchCommands launches_;
  HostFunctionCommands host_functions_;
  ReportCommands reports_;
};

}  // namespace slate::daemon
