// HostMemoryCommands: a session's host memory that the device reaches, and the commands on it. A
// freed block is gone for the client at once. It is given back when all work submitted before the
// free has finished. Session thread.
#pragma once

#include <memory>
#include <vector>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/part_context.h"
#include "daemon/engine/host_blocks.h"

namespace slate::daemon {

class HostMemoryCommands {
 public:
  /// `account`: of the host memory of all sessions; null: none. `send` sends a block's memory to
  /// the client.
  HostMemoryCommands(const PartContext& context, std::shared_ptr<MemoryLedger::Account> account,
                     HostBlocks::Send send)
      : context_(context),
        account_(std::move(account)),
        blocks_(context.device, HostBlocks::default_limit(), account_.get(), std::move(send),
                notes_of(context.book), context.window().host) {}

  Result<void> on(const Call<ipc::CommandType::kHostAllocate>& call);
  Result<void> on(const Call<ipc::CommandType::kHostMapped>& call);
  Result<void> on(const Call<ipc::CommandType::kHostFree>& call);

  /// Makes a block of another engine again; see HostBlocks::make_again().
  Result<void> make_again(std::uint64_t id, const BookHost& block, int memory);
  /// Gives back, behind the present work, what the other engine had retired.
  Result<void> free_retired();
  const HostBlocks& blocks() const { return blocks_; }
  /// Requires: no unfinished work uses a block.
  void release() { blocks_.release(); }

 private:
  Result<void> free(std::uint64_t id);
  static HostBlocks::Notes notes_of(const std::shared_ptr<SessionBook>& book);

  const PartContext& context_;
  const std::shared_ptr<MemoryLedger::Account> account_;
  HostBlocks blocks_;
  std::vector<std::uint64_t> retired_;  // blocks that another engine had retired
};

}  // namespace slate::daemon
