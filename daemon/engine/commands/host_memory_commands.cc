#include "daemon/engine/commands/host_memory_commands.h"

#include <utility>

namespace slate::daemon {

using ipc::CommandType;

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostAllocate>& call) {
  const auto made = blocks_.allocate(call.body.id, call.body.bytes, call.body.least);
  if (!made) return context_.checked(std::unexpected(made.error()));
  call.reply.set(ipc::AddressReply{*made});
  return {};
}

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostMapped>& call) {
  blocks_.mapped(call.body.id);
  return {};
}

Result<void> HostMemoryCommands::on(const Call<CommandType::kHostFree>& call) {
  return free(call.body.id);
}

Result<void> HostMemoryCommands::free(std::uint64_t id) {
  const auto range = blocks_.retire(id);
  if (!range) return std::unexpected(range.error());
  return context_.take_away([this, range = *range] { context_.fence.take_out(range); },
                            [this, range = *range] { blocks_.finish_free(range); });
}

Result<void> HostMemoryCommands::make_again(std::uint64_t id, const BookHost& block, int memory) {
  if (block.retired != 0) retired_.push_back(id);
  return blocks_.make_again(id, block, memory);
}

Result<void> HostMemoryCommands::free_retired() {
  for (const std::uint64_t id : std::exchange(retired_, {})) {
    if (const auto done = free(id); !done) return done;
  }
  return {};
}

HostBlocks::Notes HostMemoryCommands::notes_of(const std::shared_ptr<SessionBook>& book) {
  if (book == nullptr) return {};
  return {.there = [book](std::uint64_t id, const BookHost& block,
                          int memory) { book->host(id, block, memory); },
          .gone = [book](std::uint64_t id) { book->host_gone(id); }};
}

}  // namespace slate::daemon
