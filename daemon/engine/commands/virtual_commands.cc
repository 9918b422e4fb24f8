#include "daemon/engine/commands/virtual_commands.h"

#include <chrono>
#include <utility>

namespace slate::daemon {

using ipc::CommandType;

Result<void> VirtualCommands::on(const Call<CommandType::kAddressReserve>& call) {
  const auto address = ranges_->reserve(call.body);
  if (!address) return context_.checked(std::unexpected(address.error()));
  call.reply.set(ipc::AddressReply{*address});
  return {};
}

Result<void> VirtualCommands::on(const Call<CommandType::kAddressFree>& call) {
  return ranges_->unreserve(call.body.address);
}

Result<void> VirtualCommands::on(const Call<CommandType::kPhysicalCreate>& call) {
  return context_.checked(
      memory_.with_room([&] { return ranges_->create(call.body.id, call.body.bytes); }));
}

Result<void> VirtualCommands::on(const Call<CommandType::kPhysicalRelease>& call) {
  const auto home = ranges_->retire(call.body.id);
  if (!home) return std::unexpected(home.error());
  return context_.checked(context_.retirement.after_present_work(
      [this, at = *home] { memory_.manager().finish_free(at); }));
}

/// Where memory was unmapped it may still be: as work uses it, or as a host function or a lane is
/// still to come before the command. Want of room makes the session try again after such commands.
Result<void> VirtualCommands::on(const Call<CommandType::kPhysicalMap>& call) {
  const device::AddressRange range{call.body.address, call.body.bytes};
  while (ranges_->is_leaving(range) && !context_.faults.failed() && !context_.is_over()) {
    if (const auto ordered = context_.checked(context_.retirement.go_on()); !ordered)
      return ordered;
    ranges_->wait_for_unmap(std::chrono::milliseconds(100));
  }
  if (ranges_->has_mapping(range) && context_.held.keeps_frees())
    return fail(ErrorCode::kOutOfMemory, "what is mapped there is not unmapped yet");
  return context_.checked(ranges_->map(range, call.body.memory));
}

Result<void> VirtualCommands::on(const Call<CommandType::kPhysicalUnmap>& call) {
  const device::AddressRange range{call.body.address, call.body.bytes};
  auto retired = ranges_->retire_mappings(range);
  if (!retired) return std::unexpected(retired.error());
  return context_.take_away([this, range] { context_.fence.take_out(range); },
                            [this, mappings = std::move(*retired)] {
                              for (const device::Address mapping : mappings)
                                ranges_->finish_unmap(mapping);
                            });
}

}  // namespace slate::daemon
