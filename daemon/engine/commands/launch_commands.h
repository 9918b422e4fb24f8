// LaunchCommands: checks launches; the executor starts them when the policy says so. It also knows
// which streams are held by a launch that can be called back. Session thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/code_commands.h"
#include "daemon/engine/commands/memory_commands.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/commands/sharing_commands.h"
#include "daemon/engine/commands/virtual_commands.h"

namespace slate::daemon {

class LaunchCommands {
 public:
  /// All outlive it.
  LaunchCommands(const PartContext& context, MemoryCommands& memory, const HostMemoryCommands& host,
                 CodeCommands& code, SharingCommands& sharing, VirtualCommands& mapped)
      : context_(context),
        memory_(memory),
        host_(host),
        code_(code),
        sharing_(sharing),
        mapped_(mapped) {}

  Result<void> on(const Call<ipc::CommandType::kLaunch>& call);
  Result<void> on(const Call<ipc::CommandType::kClusterQuery>& call);

  /// Releases the streams whose launch was seen to end.
  void release_ended();
  /// Whether a launch that can be called back holds a stream.
  bool hold_any() const { return !holds_.empty(); }
  /// As Launcher::bare_turn(). Any thread.
  std::uint64_t bare_turn() const { return bare_turn_.load(); }

 private:
  Result<void> launch(const Call<ipc::CommandType::kLaunch>& call);
  Result<FunctionRecord*> fenced(const Call<ipc::CommandType::kLaunch>& call,
                                 FunctionRecord& kernel);
  static injector::LaunchValues values_of(const Call<ipc::CommandType::kLaunch>& call,
                                          device::AddressRange extent);
  /// What a launch runs, and with which parameters, until the kernel's next launch.
  struct Code {
    device::Function function{};
    std::span<const std::byte> parameters{};
  };
  Result<Code> code_for(const Call<ipc::CommandType::kLaunch>& call, FunctionRecord& kernel);
  Result<BoundedCopy*> bounded_copy_for(const Call<ipc::CommandType::kLaunch>& call,
                                        FunctionRecord& kernel,
                                        const injector::LaunchValues& launch);
  Result<void> fill_bank(const FunctionRecord& kernel, LogicalStream& stream) const;
  Result<void> fill(OwnConstantSet& constants, LogicalStream& stream, bool lasts) const;
  Result<bool> bring_up_to_date(OwnConstantSet& constants, LogicalStream& stream) const;

  struct Hold {
    std::uint64_t stream;
    std::uint64_t position;  // position of the launch
  };

  const PartContext& context_;
  MemoryCommands& memory_;
  const HostMemoryCommands& host_;
  CodeCommands& code_;
  SharingCommands& sharing_;
  VirtualCommands& mapped_;
  std::vector<Hold> holds_;
  // The present launch's position until it is known to be behind the fence; 0: none. Changed with
  // each launch, so as cheaply as possible.
  std::atomic<std::uint64_t> bare_turn_{0};
};

}  // namespace slate::daemon
